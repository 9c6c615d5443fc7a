import { parseAccountId } from "../../chains/caip.ts";
import { getChain } from "../../chains/open-chains.ts";
import { commitIfOk } from "../../db/in-transaction.ts";
import { closeAccumulating } from "../../db/queries/accumulating-settlements.ts";
import { lockInventory, readInventory } from "../../db/queries/inventory.ts";
import { debitMerchant, insertGroups } from "../../db/queries/ledger-groups.ts";
import {
  listDueSettlements,
  moveSettlementsToPaying,
  type SettlementWithDestination,
} from "../../db/queries/settlements.ts";
import { insertTransfers, type NewTransfer } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import type { RefusalReason } from "../../signer/refusals.ts";
import { screenAccounts } from "../../transfers/screen-accounts.ts";
import { settlementBegunGroup } from "../accounting/payout-groups.ts";
import { enqueueRelays } from "../lifecycle/relay-transfers.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { beginEach } from "./begin-each.ts";
import { groupByBalance } from "./group-by-balance.ts";
import { type ForgottenPayouts, findForgottenPayouts, isRereadFor, wasPaid } from "./paid-before-restore.ts";
import { enqueueRefunds } from "./refund-payment.ts";
import { chainOf, listCaughtUp, type PayoutDeps, receiverOf, signPayouts, splitByKnownAsset } from "./sign-payout.ts";
import { type Draw, type Short, splitByCover } from "./split-by-cover.ts";
import { splitForgottenSettlements } from "./split-payout.ts";

/** The outcome of a settlement: begun (now or before), or the reason why it waits. */
export type SettleOutcome =
  | "begun"
  | "watcher_behind"
  | "unrecorded_payout"
  | "unknown_asset"
  | "no_destination"
  | "not_served"
  | "held"
  | "balance_short"
  | "inventory_short"
  | "refund_pending"
  | RefusalReason;
/** A settlement that failed, for example because a row of its payout cannot be written. It is tried again. */
export type FailedSettlement = { error: unknown };
type Outcomes = Map<string, SettleOutcome | FailedSettlement>;

type Deps = PaymentDeps & PayoutDeps;
/** A signed payout. `wasPaid`: the chain shows it as made, so it is adopted and needs no inventory. */
type Payout = { settlement: SettlementWithDestination; transfer: NewTransfer; wasPaid: boolean };

/**
 * Begins payouts. The treasury signs an authorization to each merchant's destination, and in one database transaction
 * the amounts move from the merchants' balances to in transit. The nonce names the settlement, so the chain rejects a
 * second payout of it. Settlements whose payouts a restored database has forgotten begin too, when the given ones wait for
 * them. Returns outcomes in the order of `settlementIds`. A settlement that fails keeps no other one from beginning. Throws the error of one
 * that fails and is not among the given ones.
 * @returns the error instead of the outcome of a settlement that failed
 */
export async function beginSettlements(
  deps: Deps,
  settlementIds: readonly string[],
): Promise<(SettleOutcome | FailedSettlement)[]> {
  await closeAccumulating(deps.db, settlementIds, deps.now());
  const wanted = await listDueSettlements(deps.db, settlementIds);
  const outcomes: Outcomes = new Map();
  const caughtUp = await listCaughtUp(
    deps,
    wanted.map(({ asset }) => chainOf(asset)),
  );
  const reads = { caughtUp, isReread: await isRereadFor(deps, wanted) };
  const [known, unknown] = splitByKnownAsset(deps, wanted);
  for (const { id, asset } of unknown)
    deps.log.error({ settlement: id, asset }, "settlement waits: its asset is not in the networks file");
  const unblocked = known.filter((settlement) => !findObstacle(settlement, { ...reads, isPaid: true }));
  const { waiting, first, forgotten } = await findForgottenPayouts(deps, unblocked);
  const due = [...(await listMissing(deps, first, wanted)), ...wanted];
  const obstacleOf = (settlement: SettlementWithDestination) => {
    if (unknown.includes(settlement)) return "unknown_asset";
    const obstacle = findObstacle(settlement, { ...reads, isPaid: forgotten.has(settlement.id) });
    return obstacle ?? (waiting.has(settlement.id) ? "unrecorded_payout" : undefined);
  };
  const refused = await screenDestinations(
    deps,
    due.filter((settlement) => !obstacleOf(settlement)),
  );
  const payable: SettlementWithDestination[] = [];
  for (const settlement of due) {
    const blocked = obstacleOf(settlement) ?? refused.get(settlement.id);
    if (blocked) outcomes.set(settlement.id, blocked);
    else payable.push(settlement);
  }
  const split = await splitForgottenSettlements(deps, payable, forgotten);
  for (const { id } of split.waiting) outcomes.set(id, "unrecorded_payout");
  // A settlement that the signer refuses takes nothing, so the settlements that were short are checked once more.
  for (let left: readonly SettlementWithDestination[] = split.ready; left.length > 0; ) {
    const { covered, short } = await splitByCover(deps.db, left, (settlement) => toDraw(settlement, forgotten));
    left = short.map(({ payout }) => payout);
    if (covered.length === 0) {
      await recordShort(deps, short, outcomes);
      break;
    }
    await beginCovered(deps, covered, { caughtUp, outcomes, forgotten });
  }
  await enqueueRefunds(
    deps,
    due.flatMap(({ refunds }) => refunds),
  );
  for (const [id, outcome] of outcomes)
    if (typeof outcome === "object" && !settlementIds.includes(id)) throw outcome.error;
  return settlementIds.map((id) => outcomes.get(id) ?? "begun");
}

/**
 * Returns those of these settlements with forgotten payouts that are not among the wanted ones. They may be far behind in
 * their queue or still accumulate, and the settlements before them wait for their adoption.
 */
async function listMissing(
  deps: Deps,
  forgotten: readonly string[],
  wanted: readonly SettlementWithDestination[],
): Promise<SettlementWithDestination[]> {
  const ids = forgotten.filter((id) => wanted.every((one) => one.id !== id));
  if (ids.length === 0) return [];
  await closeAccumulating(deps.db, ids, deps.now(), { isPaid: true });
  return listDueSettlements(deps.db, ids);
}

/** Records that settlements wait for a balance or for inventory. */
async function recordShort(
  deps: Deps,
  short: readonly Short<SettlementWithDestination>[],
  outcomes: Outcomes,
): Promise<void> {
  // A settlement that another worker has begun meanwhile has taken what it seems to lack.
  const due = await listDueSettlements(
    deps.db,
    short.map(({ payout }) => payout.id),
  );
  const dueIds = new Set(due.map(({ id }) => id));
  for (const { payout, why } of short) {
    if (!dueIds.has(payout.id)) continue;
    outcomes.set(payout.id, why);
    if (why === "inventory_short") reportInventoryShort(deps, payout);
  }
}

/** Signs settlements and begins them. Adds to `outcomes` why settlements wait, and the errors of those that fail. */
async function beginCovered(
  deps: Deps,
  settlements: readonly SettlementWithDestination[],
  args: { caughtUp: ReadonlyMap<string, string>; outcomes: Outcomes; forgotten: ForgottenPayouts },
): Promise<void> {
  const { caughtUp, outcomes, forgotten } = args;
  const payouts: Payout[] = [];
  for (const [index, result] of (await signPayouts(deps, settlements.map(toPayout))).entries()) {
    const settlement = settlements[index];
    if (!settlement) continue;
    if (result.ok) payouts.push({ settlement, transfer: result.transfer, wasPaid: wasPaid(forgotten, settlement) });
    else outcomes.set(settlement.id, result.reason);
  }
  const { begun, waiting, failed } = await beginEach(payouts, {
    tryBegin: (some) => tryBegin(deps, some, caughtUp),
    concernsAll: (why) => why === "watcher_behind",
  });
  for (const { payout, why } of waiting) {
    const { settlement } = payout;
    outcomes.set(settlement.id, why);
    if (why === "inventory_short") reportInventoryShort(deps, settlement);
  }
  for (const { payout, error } of failed) outcomes.set(payout.settlement.id, { error });
  for (const { settlement } of begun)
    deps.metrics.settlementTransitions.inc({ mode: settlement.mode, from: "due", to: "paying" });
  await enqueueRelays(
    deps,
    begun.map(({ transfer }) => ({ chain: transfer.chain, transferId: transfer.id })),
  );
}

/**
 * Returns why a settlement waits. `isPaid`: the chain shows it as paid before a restore, or a part of it, on which no refund may draw. The
 * remainder becomes a settlement of its own, which waits for the refunds.
 * `isReread`: see `isRereadFor`.
 */
function findObstacle(
  { asset, registered, held, refunds, mixed }: SettlementWithDestination,
  { caughtUp, isPaid, isReread }: { caughtUp: ReadonlyMap<string, string>; isPaid: boolean; isReread: boolean },
): SettleOutcome | undefined {
  if (held) return "held";
  // The merchant's refunds have priority: they draw on the same balance.
  if (refunds.length > 0 && !isPaid) return "refund_pending";
  if (!parseAccountId(registered ?? "")) return "no_destination";
  return caughtUp.has(chainOf(asset)) && (isReread || !mixed) ? undefined : "watcher_behind";
}

/** Screens the destinations. A settlement whose destination is rejected waits; the others continue. */
async function screenDestinations(
  deps: Deps,
  settlements: readonly SettlementWithDestination[],
): Promise<Map<string, SettleOutcome>> {
  const outcomes = new Map<string, SettleOutcome>();
  for (const [id, some] of Map.groupBy(settlements, ({ asset }) => chainOf(asset))) {
    const accounts = some.map(({ registered }) => receiverOf(id, registered));
    const refused = await screenAccounts(deps, getChain(deps.chains, id), [...new Set(accounts)]);
    for (const [index, { id: settlement, merchant_id: merchant }] of some.entries()) {
      if (!refused.has(accounts[index] ?? "")) continue;
      deps.log.error({ settlement, merchant }, "settlement waits: screening rejects the merchant's destination");
      outcomes.set(settlement, "not_served");
    }
  }
  return outcomes;
}

function toPayout({ id, merchant_id: merchantId, asset, number, amount, registered }: SettlementWithDestination) {
  const receiver = receiverOf(asset, registered);
  return {
    of: { purpose: "settlement" as const, settlement_id: id },
    request: { kind: "settlement" as const, merchantId, number, asset, amount, receiver, deposits: [] },
  };
}

function toDraw(settlement: SettlementWithDestination, forgotten: ForgottenPayouts): Draw {
  const { merchant_id: merchantId, asset, amount, converted } = settlement;
  const balance = { merchantId, asset, amount };
  return { paid: { asset, amount }, balance, converted, wasPaid: wasPaid(forgotten, settlement), reserved: undefined };
}

/** Why a batch of payouts is rolled back. `watcher_behind`: the database was restored after signing. */
type Obstacle = "balance_short" | "inventory_short" | "watcher_behind";
type BeginResult = { ok: true; begun: Payout[] } | { ok: false; why: Obstacle };

/** Begins payouts in one transaction, all or none. */
async function tryBegin(
  deps: Deps,
  payouts: readonly Payout[],
  epochs: ReadonlyMap<string, string>,
): Promise<BeginResult> {
  const written = await commitIfOk(deps.db, async (db) => {
    const attempted = await writeBegun(deps, db, payouts);
    if (!attempted.ok) return attempted;
    const passed = await deps.epoch.pass(db, ...epochs.values());
    return passed.ok ? { ...attempted, ...passed } : ({ ok: false, why: "watcher_behind" } as const);
  });
  if (written.ok) await written.afterCommit();
  return written;
}

/** Reports a payout of converted money that the treasury's inventory does not cover. */
function reportInventoryShort(deps: Deps, { id, asset, amount }: SettlementWithDestination): void {
  deps.log.error({ settlement: id, asset, amount: String(amount) }, "treasury inventory of an asset is short");
}

/** Writes state, balances, ledger and transfers of payouts. Returns the payouts that moved to `paying`. */
async function writeBegun(deps: Deps, db: Db, payouts: readonly Payout[]): Promise<BeginResult> {
  const at = deps.now();
  // Lock order: inventories, then settlements, then balances (avoids deadlock).
  for (const asset of listInventories(payouts)) await lockInventory(db, asset);
  const begun = await moveToPaying(db, payouts, at);
  for (const asset of listInventories(begun))
    if ((await readInventory(db, asset)) < 0n) return { ok: false, why: "inventory_short" };
  const keyOf = ({ settlement }: Payout) => ({ merchantId: settlement.merchant_id, asset: settlement.asset });
  for (const { merchantId, asset, items } of groupByBalance(begun, keyOf)) {
    const amount = items.reduce((sum, { settlement }) => sum + settlement.amount, 0n);
    if (!(await debitMerchant(db, { merchantId, asset, amount }))) return { ok: false, why: "balance_short" };
  }
  const groups = begun.map(({ settlement }) =>
    settlementBegunGroup({ ...settlement, merchantId: settlement.merchant_id }),
  );
  await insertGroups(db, groups, at);
  await insertTransfers(
    db,
    begun.map(({ transfer }) => transfer),
    at,
  );
  return { ok: true, begun };
}

/**
 * Returns the assets whose inventory pays these payouts, in a fixed order: money that came in another asset is paid out of what the
 * treasury has beyond what it owes to other merchants. One that was paid before a restore takes nothing more of it.
 */
function listInventories(payouts: readonly Payout[]): string[] {
  const drawing = payouts.filter(({ settlement, wasPaid }) => settlement.converted && !wasPaid);
  return [...new Set(drawing.map(({ settlement }) => settlement.asset))].sort();
}

/**
 * Moves settlements to `paying` and records their destinations. Skips a settlement whose amount (a refund) or
 * destination has changed since its payout was signed, or whose merchant's payouts have been held since; a later run signs
 * it again. Returns the payouts that moved.
 */
async function moveToPaying(db: Db, payouts: readonly Payout[], at: Date): Promise<Payout[]> {
  const signed = payouts.map(({ settlement, transfer }) => ({
    id: settlement.id,
    destination: settlement.registered,
    amount: transfer.amount,
  }));
  const moved = new Set(await moveSettlementsToPaying(db, signed, at));
  return payouts.filter(({ settlement }) => moved.has(settlement.id));
}
