import { sql } from "kysely";
import { parseAccountId } from "../chains/caip.ts";
import { getChain } from "../chains/open.ts";
import { debitMerchant, insertGroups } from "../db/ledger.ts";
import { moveRows } from "../db/moves.ts";
import { closeGathering, listDueSettlements, type SettlementWithDestination } from "../db/settlements.ts";
import { readStock } from "../db/stock.ts";
import type { Db } from "../db/tables.ts";
import { insertTransfers, type NewTransfer } from "../db/transfers.ts";
import { SteppedBack } from "../transfers/epoch.ts";
import { screenAccounts } from "../transfers/screening.ts";
import type { PaymentDeps } from "./deps.ts";
import { settlementBegunGroup } from "./ledger.ts";
import { listBehindMade } from "./made-before.ts";
import { chainOf, listCaughtUp, type PayoutDeps, settlementKey, signPayout, splitKnown } from "./payout.ts";
import { ringRefunds } from "./refund.ts";
import { ringRelays } from "./relay.ts";

/** What became of a settlement: begun now or before, or why it has to wait. */
export type SettleOutcome =
  | "begun"
  | "watcher_behind"
  | "behind_made"
  | "unknown_asset"
  | "no_destination"
  | "not_served"
  | "held"
  | "balance_short"
  | "stock_short"
  | "refund_waits";

type Deps = PaymentDeps & PayoutDeps;
type Payout = { settlement: SettlementWithDestination; transfer: NewTransfer };

/**
 * Begins payouts: the treasury signs one authorization each to the merchant's destination, whose nonce names the
 * settlement, and what is owed moves to in transit, all in one transaction. The chain refuses a second one. Outcomes in
 * the order asked.
 */
export async function beginSettlements(deps: Deps, settlementIds: readonly string[]): Promise<SettleOutcome[]> {
  await closeGathering(deps.db, settlementIds, deps.now());
  const due = await listDueSettlements(deps.db, settlementIds);
  const outcomes = new Map<string, SettleOutcome>();
  const payouts: Payout[] = [];
  const caughtUp = await listCaughtUp(
    deps,
    due.map(({ asset }) => chainOf(asset)),
  );
  const [known, unknown] = splitKnown(deps, due);
  for (const { id, asset } of unknown)
    deps.log.error({ settlement: id, asset }, "a settlement's asset is not in the networks file: it waits");
  const behind = await listBehindMade(deps, known);
  const obstacleOf = (settlement: SettlementWithDestination) => {
    if (unknown.includes(settlement)) return "unknown_asset";
    return findObstacle(settlement, caughtUp) ?? (behind.has(settlement.id) ? "behind_made" : undefined);
  };
  const refused = await screenDestinations(
    deps,
    due.filter((settlement) => !obstacleOf(settlement)),
  );
  for (const settlement of due) {
    const blocked = obstacleOf(settlement) ?? refused.get(settlement.id);
    if (blocked) outcomes.set(settlement.id, blocked);
    else payouts.push({ settlement, transfer: await signOne(deps, settlement) });
  }
  const { begun, short } = await begin(deps, payouts, caughtUp);
  for (const { settlement, why } of short) outcomes.set(settlement.id, why);
  for (const { settlement } of begun)
    deps.metrics.settlementMoves.inc({ mode: settlement.mode, from: "due", to: "paying" });
  await ringRelays(
    deps,
    begun.map(({ transfer }) => ({ chain: transfer.chain, transferId: transfer.id })),
  );
  await ringRefunds(
    deps,
    due.flatMap(({ refunds }) => refunds),
  );
  return settlementIds.map((id) => outcomes.get(id) ?? "begun");
}

function findObstacle(
  { asset, registered, held, refunds }: SettlementWithDestination,
  caughtUp: ReadonlyMap<string, string>,
): SettleOutcome | undefined {
  if (held) return "held";
  // Its merchant's refunds come first: they are drawn on the same balance.
  if (refunds.length > 0) return "refund_waits";
  if (!parseAccountId(registered ?? "")) return "no_destination";
  return caughtUp.has(chainOf(asset)) ? undefined : "watcher_behind";
}

/** Nothing goes to whom the operator does not serve: such a merchant waits, and keeps no other one waiting. */
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
      deps.log.error(
        { settlement, merchant },
        "a merchant's destination is not served (screening): it is not paid out",
      );
      outcomes.set(settlement, "not_served");
    }
  }
  return outcomes;
}

/** The address of a destination, as it stands in transfers: in lower case on EVM. */
function receiverOf(chain: string, destination: string | null): string {
  const address = parseAccountId(destination ?? "")?.address ?? "";
  return chain.startsWith("eip155:") ? address.toLowerCase() : address;
}

function signOne(deps: Deps, settlement: SettlementWithDestination): Promise<NewTransfer> {
  const { id, asset, amount, registered } = settlement;
  const receiver = receiverOf(asset, registered);
  const key = settlementKey(settlement);
  return signPayout(deps, { of: { purpose: "settlement", settlement_id: id }, asset, amount, receiver, key });
}

/** Undoes the transaction of payouts that a merchant's balance, or the treasury's stock, does not cover. */
class Short extends Error {
  override readonly name = "Short";
  readonly why: "balance_short" | "stock_short";
  constructor(why: "balance_short" | "stock_short") {
    super(why);
    this.why = why;
  }
}

type Begun = { begun: Payout[]; short: (Payout & { why: Short["why"] | "watcher_behind" })[] };

/** State, balances, ledger and transfers of payouts in one transaction; those that are not covered are `short`. */
async function begin(deps: Deps, payouts: readonly Payout[], epochs: ReadonlyMap<string, string>): Promise<Begun> {
  if (payouts.length === 0) return { begun: [], short: [] };
  try {
    const { begun, counted } = await deps.db.transaction().execute(async (db) => {
      const begun = await beginTogether(deps, db, payouts);
      return { begun, counted: await deps.epoch.pass(db, ...epochs.values()) };
    });
    await counted();
    return { begun, short: [] };
  } catch (error) {
    if (error instanceof SteppedBack)
      return { begun: [], short: payouts.map((payout) => ({ ...payout, why: "watcher_behind" })) };
    if (!(error instanceof Short)) throw error;
    if (payouts.length === 1) {
      if (error.why === "stock_short") tellStockShort(deps, payouts);
      return { begun: [], short: payouts.map((payout) => ({ ...payout, why: error.why })) };
    }
  }
  // One of them is not covered: the others must not wait for it.
  const each = [];
  for (const payout of payouts) each.push(await begin(deps, [payout], epochs));
  return { begun: each.flatMap(({ begun }) => begun), short: each.flatMap(({ short }) => short) };
}

function tellStockShort(deps: Deps, payouts: readonly Payout[]): void {
  for (const { settlement, transfer } of payouts) {
    const { id, asset, amount } = settlement;
    deps.metrics.stockShort.inc({ chain: transfer.chain, asset });
    deps.log.error({ settlement: id, asset, amount: String(amount) }, "the treasury's stock of an asset is short");
  }
}

async function beginTogether(deps: Deps, db: Db, payouts: readonly Payout[]): Promise<Payout[]> {
  const at = deps.now();
  const ids = payouts.map(({ settlement }) => settlement.id);
  const destinations = payouts.map(({ settlement }) => settlement.registered);
  // What was signed is what is written down.
  const destination = sql<string>`(select f.destination from unnest(${ids}::text[], ${destinations}::text[]) as f (id, destination) where f.id = settlement.id)`;
  // A refund may have taken some of it meanwhile, or its merchant be paid elsewhere now: then it is signed anew, later.
  const where = sql`(id, amount) in (
    select * from unnest(${ids}::text[], ${payouts.map(({ transfer }) => transfer.amount)}::numeric[]))
    and exists (select from settlement_destination d where d.merchant_id = settlement.merchant_id
      and d.asset = settlement.asset and d.destination = ${destination})`;
  const set = { destination, due_at: null };
  const moved = new Set(await moveRows(db, "settlement", { ids, from: "due", to: "paying", at, set, where }));
  const ours = payouts.filter(({ settlement }) => moved.has(settlement.id));
  const converted = ours.filter(({ settlement }) => settlement.converted).map(({ settlement }) => settlement.asset);
  // What came in another asset is paid out of what the treasury has in this one beyond what it owes to others.
  for (const asset of [...new Set(converted)].sort())
    if ((await readStock(db, asset)) < 0n) throw new Short("stock_short");
  const byBalance = Map.groupBy(ours, ({ settlement }) => `${settlement.merchant_id} ${settlement.asset}`);
  for (const key of [...byBalance.keys()].sort()) {
    const group = byBalance.get(key) ?? [];
    const amount = group.reduce((sum, { settlement }) => sum + settlement.amount, 0n);
    const [merchantId = "", asset = ""] = key.split(" ");
    if (!(await debitMerchant(db, { merchantId, asset, amount }))) throw new Short("balance_short");
  }
  const groups = ours.map(({ settlement }) =>
    settlementBegunGroup({ ...settlement, merchantId: settlement.merchant_id }),
  );
  await insertGroups(db, groups, at);
  await insertTransfers(
    db,
    ours.map(({ transfer }) => transfer),
    at,
  );
  return ours;
}
