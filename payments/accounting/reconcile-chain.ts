import { setTimeout as delay } from "node:timers/promises";
import { parseAssetId } from "../../chains/caip.ts";
import { nativeAsset } from "../../chains/canonical-ids.ts";
import type { Chain } from "../../chains/chain.ts";
import type { Holding } from "../../chains/chain-driver.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { getChain } from "../../chains/open-chains.ts";
import { findUnreadEpoch } from "../../db/epoch.ts";
import { insertGroups, keepNewGroups } from "../../db/queries/ledger-groups.ts";
import {
  findHeights,
  keepReconciliation,
  type LedgerSide,
  listLaneAddresses,
  listUnfinished,
  lockReconciliation,
  readLedgerSides,
  takeDueReconciliations,
  type UnfinishedTransaction,
} from "../../db/queries/reconciliations.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { accounts } from "./ledger-accounts.ts";
import { laneDepositGroup, laneOutflowGroup } from "./ledger-groups.ts";

/**
 * The reconciliation of one ledger account with the chain, minor units. `held`, the balance on chain, should equal
 * `booked` plus `inFlight` (observed on chain and not booked yet). Money that left the treasury or a lane without us
 * counts as booked until an operator resolves its exception. `difference` is the excess on chain.
 */
export type ReconcileLine = {
  chain: string;
  block: number;
  account: string;
  asset: string;
  booked: bigint;
  inFlight: bigint;
  held: bigint;
  difference: bigint;
};

type Deps = Pick<PaymentDeps, "db" | "chains" | "now" | "log">;
/** The expected balance of an account, from the ledger and other rows. */
type Claim = Pick<ReconcileLine, "account" | "asset" | "booked" | "inFlight"> & {
  /** Deposits that were booked at later blocks and may have arrived before this block. */
  given: bigint;
  /** The part of `booked` that has left without us and is booked as an exception. */
  left: bigint;
};
type Compared = ReconcileLine & Pick<Claim, "left">;

/**
 * Reconciles the ledger with a chain at a block (by default the newest block that is final and booked): the treasury's
 * tokens and the lanes' native balances. A native deposit leaves no log, and only the operator deposits into a lane, so
 * a lane's excess is booked as capital. A shortage of a lane beyond the most that its unfinished transactions can cost is
 * booked as an exception, so that a later deposit does not hide it. Stores, logs and returns every difference.
 *
 * Refuses with `invalid_state` for a chain that is not watched, or a block that has not been read or is not available.
 * Throws `ChainError` when the node no longer has the block's state.
 */
export async function reconcileChain(
  deps: Deps,
  args: { chain: string; block?: number | undefined },
): Promise<Result<ReconcileLine[]>> {
  const chain = getChain(deps.chains, args.chain);
  const holdings = await readHoldings(deps, chain, args.block);
  if (!holdings.ok) return holdings;
  const { block, held } = holdings.value;
  const lines = await deps.db.transaction().execute(async (db) => {
    await lockReconciliation(db, chain.chain);
    // Bookings made during the chain reads are for later blocks, or are a deposit that a concurrent run has found.
    const found = (await listClaims(db, chain, block)).flatMap((claim) => {
      const has = held.get(nameOf(claim));
      return has === undefined ? [] : [{ chain: chain.chain, block, ...compare(claim, has) }];
    });
    const deposited = await bookDeposits(deps, db, found);
    if (args.block === undefined) await bookOutflows(deps, db, chain, deposited);
    const lines = deposited.map(({ left: _, ...line }) => line);
    if (args.block === undefined) await keep(deps, db, chain.chain, lines);
    return lines;
  });
  for (const { account, asset, difference } of lines)
    if (difference !== 0n)
      deps.log.error(
        { chain: chain.chain, block, account, asset, difference: String(difference) },
        "ledger does not match the chain",
      );
  return done(lines);
}

function keep(deps: Deps, db: Db, chain: string, lines: readonly ReconcileLine[]): Promise<void> {
  const at = deps.now();
  const rows = lines.map(({ inFlight: in_flight, block: block_number, difference: _, ...line }) => ({
    ...line,
    block_number,
    in_flight,
    at,
  }));
  return keepReconciliation(db, chain, rows);
}

/** Time limit for the watcher to book what is final on chain, milliseconds. */
const BOOKED_WITHIN_MS = 15_000;
/** Interval between reconciliations of a chain, milliseconds. */
const RECONCILE_EVERY_MS = 300_000;

/** Takes the chains whose reconciliation is due, and schedules their next one. */
export function takeReconciliations(deps: Pick<PaymentDeps, "db" | "chains" | "now">): Promise<string[]> {
  const now = deps.now();
  const nextAt = new Date(now.getTime() + RECONCILE_EVERY_MS);
  return takeDueReconciliations(deps.db, { chains: [...deps.chains.keys()], now, nextAt });
}

/** Lists the expected balances: the treasury's of every asset that is configured or was ever booked, and the lanes'. */
async function listClaims(db: Db, chain: Chain, block: number): Promise<Claim[]> {
  const lanes = await listLaneAddresses(db, chain.chain);
  const names = [accounts.treasury, ...lanes.map(accounts.lane)];
  const sides = await readLedgerSides(db, { chain: chain.chain, block, accounts: names, treasury: chain.treasury });
  const sum = (wanted: (side: LedgerSide) => boolean) =>
    sides.filter(wanted).reduce((total, { amount }) => total + amount, 0n);
  const claim = (account: string, asset: string, isInFlight: (side: LedgerSide) => boolean): Claim => ({
    account,
    asset,
    booked: sum(
      (side) => (side.what === "booked" || side.what === "left") && side.account === account && side.asset === asset,
    ),
    inFlight: sum((side) => side.account === account && isInFlight(side)),
    given: sum(({ what, account: whose }) => what === "given" && whose === account),
    left: sum((side) => side.what === "left" && side.account === account && side.asset === asset),
  });
  const ever = sides.flatMap(({ account, asset }) => (account === accounts.treasury && asset ? asset : []));
  const assets = [...new Set([...chain.tokens.keys(), ...ever])].sort();
  return [
    ...assets.map((asset) =>
      claim(accounts.treasury, asset, ({ what, token }) => what === "moved" && token === tokenOf(asset)),
    ),
    ...lanes.map((address) => claim(accounts.lane(address), nativeAsset(chain.chain), ({ what }) => what === "spent")),
  ];
}

/** Compares the balance on chain with the expected one. */
function compare({ given, ...claim }: Claim, held: bigint) {
  const more = held - claim.booked - claim.inFlight;
  const early = more > 0n && given > 0n ? (more < given ? more : given) : 0n;
  return { ...claim, inFlight: claim.inFlight + early, held, difference: more - early };
}

/** Balances of accounts on chain at a block. */
type Holdings = { block: number; held: ReadonlyMap<string, bigint> };

/**
 * Reads the balances at a block, by default the newest one that is final and booked. Where nodes return only current
 * balances, waits until everything before them is booked. Omits assets that can no longer be located.
 */
async function readHoldings(deps: Deps, chain: Chain, wanted: number | undefined): Promise<Result<Holdings>> {
  const driver = getChainDriver(chain.chain);
  const heights = await findHeights(deps.db, chain.chain);
  if (!heights) return refuse("invalid_state", `${chain.chain} is not watched yet`);
  if (wanted !== undefined && !driver.readsPastBalances)
    return refuse("invalid_state", `the nodes of ${chain.chain} return only current balances`);
  const block = wanted ?? heights.final;
  if (block > heights.read) return refuse("invalid_state", `${chain.chain} has been read up to block ${heights.read}`);
  const claims = await listClaims(deps.db, chain, heights.final);
  const { height, balances } = await driver.readBalances(chain, claims.map(toHolding), block);
  if (!driver.readsPastBalances && !(await isBooked(deps, chain.chain, height)))
    return refuse("invalid_state", `the watcher of ${chain.chain} has not reached height ${height} in time`);
  const held = claims.flatMap((claim, index): [string, bigint][] => {
    const balance = balances[index];
    return balance === undefined ? [] : [[nameOf(claim), balance]];
  });
  return done({ block: height, held: new Map(held) });
}

const toHolding = ({ account, asset }: Claim): Holding =>
  account === accounts.treasury ? { asset } : { lane: laneOf(account) };
const nameOf = ({ account, asset }: Pick<Claim, "account" | "asset">) => `${account} ${asset}`;
const tokenOf = (asset: string) => parseAssetId(asset)?.token ?? "";
/** Returns the lane's address in the name of its account. */
const laneOf = (account: string) => account.slice(accounts.lane("").length);

/** Waits until everything up to a height is booked. Returns false after the time limit. */
async function isBooked(deps: Deps, chain: string, height: number): Promise<boolean> {
  for (const until = Date.now() + BOOKED_WITHIN_MS; ; ) {
    if (((await findHeights(deps.db, chain))?.final ?? 0) >= height) return true;
    if (Date.now() > until) return false;
    await delay(200);
  }
}

/** Returns what a lane has more than the ledger says, apart from what has left without us and is booked already. */
const newExcess = ({ difference, left }: Compared): bigint => difference + left;
const isLane = ({ account }: Pick<Compared, "account">) => account !== accounts.treasury;

/** Books the lanes' deposits. Returns the lines with the deposits included. */
async function bookDeposits(deps: Deps, db: Db, lines: readonly Compared[]): Promise<Compared[]> {
  const isDeposit = (line: Compared) => isLane(line) && newExcess(line) > 0n;
  const deposits = lines.filter(isDeposit).map((line) => ({ ...line, difference: newExcess(line) }));
  await insertGroups(db, deposits.map(laneDepositGroup), deps.now());
  for (const { chain, account, difference } of deposits)
    deps.log.info({ chain, account, amount: String(difference) }, "lane received a native deposit");
  return lines.map((line) =>
    isDeposit(line) ? { ...line, booked: line.booked + newExcess(line), difference: -line.left } : line,
  );
}

/**
 * Books as exceptions what has left lanes without us: a shortage beyond the most that the lane's unfinished transactions can
 * cost. Books none while the chain has to be read again after the database lost commits: forgotten transactions are missing
 * until then, and the fees of those that are found are booked.
 */
async function bookOutflows(deps: Deps, db: Db, chain: Chain, lines: readonly Compared[]): Promise<void> {
  const short = lines.filter((line) => isLane(line) && newExcess(line) < 0n);
  if (short.length === 0 || (await findUnreadEpoch(db, chain.chain))) return;
  const costs = sumMostCosts(chain, await listUnfinished(db, chain.chain));
  const outflows = short.filter((line) => -newExcess(line) > (costs.get(line.account) ?? 0n));
  const groups = outflows.map((line) => laneOutflowGroup({ ...line, amount: -newExcess(line) }));
  await insertGroups(db, await keepNewGroups(db, groups), deps.now());
}

/** Returns the most that unfinished transactions can cost each lane, by its account. Replacements have the same nonce. */
function sumMostCosts({ network }: Chain, unfinished: readonly UnfinishedTransaction[]): Map<string, bigint> {
  const driver = getChainDriver(network.chain);
  const byNonce = new Map<string, { account: string; cost: bigint }>();
  for (const { address, nonce, ...stored } of unfinished) {
    const [key, cost] = [`${address} ${nonce}`, driver.mostCost(network, stored)];
    if (cost > (byNonce.get(key)?.cost ?? 0n)) byNonce.set(key, { account: accounts.lane(address), cost });
  }
  const sums = new Map<string, bigint>();
  for (const { account, cost } of byNonce.values()) sums.set(account, (sums.get(account) ?? 0n) + cost);
  return sums;
}
