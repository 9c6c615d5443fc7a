import { sql } from "kysely";
import { type Hex, hexToBytes } from "viem";
import { parseAccountId, parseAssetId } from "../chains/caip.ts";
import { deriveNonce } from "../chains/evm/eip3009.ts";
import type { EvmKeys } from "../chains/evm/signers/open.ts";
import { getChain } from "../chains/open.ts";
import { findReachedHead } from "../db/cursors.ts";
import { debitMerchant, insertGroups } from "../db/ledger.ts";
import { moveRows } from "../db/moves.ts";
import { listDueSettlements, type SettlementWithDestination } from "../db/settlements.ts";
import type { Db } from "../db/tables.ts";
import { insertTransfers, type NewTransfer } from "../db/transfers.ts";
import { hashRow } from "../transfers/authorization.ts";
import { type PaymentDeps, RING_AGAIN_MS } from "./deps.ts";
import { newId } from "./ids.ts";
import { settlementBegunGroup } from "./ledger.ts";
import { ringRelays } from "./relay.ts";

/**
 * Unix seconds, the year 2100. A payout's authorization does not run out: it can only ever do what is owed, once, and
 * so never has to be signed a second time.
 */
const NEVER_OUT = 4_102_444_800;
/** The treasury signs nothing while the watcher is further behind than this, milliseconds. */
const WATCH_FRESH_MS = 60_000;

/** What became of a settlement: begun now or before, or why it has to wait. */
export type SettleOutcome = "begun" | "watcher_behind" | "no_destination" | "balance_short";

type Deps = PaymentDeps & {
  keys: ReadonlyMap<string, EvmKeys>;
  /** When this process began: what the watcher had reached before may be from before a restore. */
  startedAt: Date;
};
type Payout = { settlement: SettlementWithDestination; transfer: NewTransfer };

/**
 * Begins payouts: the treasury signs one authorization (EIP-3009) each to the merchant's destination, whose nonce names
 * the settlement, and what is owed moves to in transit, all in one transaction. The chain refuses a second one. A token
 * without EIP-3009 is pushed by the treasury's own lane, marked with the same nonce; there the lane's nonce is what
 * keeps it from happening twice. Outcomes in the order asked.
 */
export async function beginSettlements(deps: Deps, settlementIds: readonly string[]): Promise<SettleOutcome[]> {
  // What has gathered is closed first: from now on nothing is added to it.
  await moveRows(deps.db, "settlement", { ids: settlementIds, from: "gathering", to: "due", at: deps.now() });
  const due = await listDueSettlements(deps.db, settlementIds);
  const outcomes = new Map<string, SettleOutcome>();
  const payouts: Payout[] = [];
  const caughtUp = await listCaughtUp(deps, due);
  for (const settlement of due) {
    const blocked = findObstacle(settlement, caughtUp);
    if (blocked) outcomes.set(settlement.id, blocked);
    else payouts.push({ settlement, transfer: await signPayout(deps, settlement) });
  }
  const { begun, short } = await begin(deps, payouts);
  for (const { settlement } of short) outcomes.set(settlement.id, "balance_short");
  for (const { settlement } of begun)
    deps.metrics.settlementMoves.inc({ mode: settlement.mode, from: "due", to: "paying" });
  await ringRelays(
    deps,
    begun.map(({ transfer }) => ({ chain: transfer.chain, transferId: transfer.id })),
  );
  return settlementIds.map((id) => outcomes.get(id) ?? "begun");
}

function findObstacle(
  { asset, registered }: SettlementWithDestination,
  caughtUp: ReadonlySet<string>,
): SettleOutcome | undefined {
  if (!parseAccountId(registered ?? "")) return "no_destination";
  return caughtUp.has(chainOf(asset)) ? undefined : "watcher_behind";
}

/** Chains whose watcher stands at the head. After a restore the rows may know less than the chain: wait for it. */
async function listCaughtUp(deps: Deps, due: readonly SettlementWithDestination[]): Promise<Set<string>> {
  const caughtUp = new Set<string>();
  for (const chain of new Set(due.map(({ asset }) => chainOf(asset)))) {
    const reached = await findReachedHead(deps.db, chain);
    if (reached && reached > deps.startedAt && deps.now().getTime() - reached.getTime() <= WATCH_FRESH_MS)
      caughtUp.add(chain);
  }
  return caughtUp;
}

function chainOf(asset: string): string {
  return parseAssetId(asset)?.chain ?? asset;
}

async function signPayout(deps: Deps, settlement: SettlementWithDestination): Promise<NewTransfer> {
  const { id, asset, amount, number, merchant_id: merchantId } = settlement;
  const chain = getChain(deps.chains, chainOf(asset));
  const token = chain.tokens.get(asset);
  const signer = deps.keys.get(chain.chain)?.treasury;
  const destination = parseAccountId(settlement.registered ?? "");
  if (!token || !signer || !destination)
    throw new Error(`${asset} of settlement ${id} is not in the networks file, or its treasury has no key`);
  const row = {
    ...{ id: newId("trf"), purpose: "settlement" as const, payment_id: null, settlement_id: id },
    ...{
      chain: chain.chain,
      asset,
      token: token.token,
      payer: chain.treasury,
      receiver: destination.address.toLowerCase(),
      amount,
    },
    authorization_nonce: deriveNonce(deps.networks.deployment, ["settlement", merchantId, asset, String(number)]),
    valid_before: NEVER_OUT,
    ...{ signature: null, permit: null },
    ...{ lane_id: null, lane_nonce: null, hold_until: null, last_trouble: null },
    due_at: new Date(deps.now().getTime() + RING_AGAIN_MS),
  };
  if (token.kind !== "eip3009") return { ...row, kind: "push" };
  const kind = "eip3009" as const;
  const signature: Hex = await signer.sign({ hash: hashRow(chain, { ...row, kind }) });
  return { ...row, kind, signature: Buffer.from(hexToBytes(signature)) };
}

/** Undoes the transaction of payouts that a merchant's balance does not cover. */
class BalanceShort extends Error {
  override readonly name = "BalanceShort";
}

/** State, balances, ledger and transfers of payouts in one transaction; those a balance does not cover are `short`. */
async function begin(deps: Deps, payouts: readonly Payout[]): Promise<{ begun: Payout[]; short: Payout[] }> {
  if (payouts.length === 0) return { begun: [], short: [] };
  try {
    return { begun: await deps.db.transaction().execute((db) => beginTogether(deps, db, payouts)), short: [] };
  } catch (error) {
    if (!(error instanceof BalanceShort)) throw error;
    if (payouts.length === 1) return { begun: [], short: [...payouts] };
  }
  // One of them is not covered: the others must not wait for it.
  const each = [];
  for (const payout of payouts) each.push(await begin(deps, [payout]));
  return { begun: each.flatMap(({ begun }) => begun), short: each.flatMap(({ short }) => short) };
}

async function beginTogether(deps: Deps, db: Db, payouts: readonly Payout[]): Promise<Payout[]> {
  const at = deps.now();
  const ids = payouts.map(({ settlement }) => settlement.id);
  const destinations = payouts.map(({ settlement }) => settlement.registered);
  // What was signed is what is written down, though the merchant may change the destination at this moment.
  const destination = sql`(select f.destination from unnest(${ids}::text[], ${destinations}::text[]) as f (id, destination) where f.id = settlement.id)`;
  const moved = new Set(
    await moveRows(db, "settlement", { ids, from: "due", to: "paying", at, set: { destination, due_at: null } }),
  );
  const ours = payouts.filter(({ settlement }) => moved.has(settlement.id));
  const byBalance = Map.groupBy(ours, ({ settlement }) => `${settlement.merchant_id} ${settlement.asset}`);
  for (const key of [...byBalance.keys()].sort()) {
    const group = byBalance.get(key) ?? [];
    const amount = group.reduce((sum, { settlement }) => sum + settlement.amount, 0n);
    const [merchantId = "", asset = ""] = key.split(" ");
    if (!(await debitMerchant(db, { merchantId, asset, amount }))) throw new BalanceShort();
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
