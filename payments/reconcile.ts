import { setTimeout as delay } from "node:timers/promises";
import type { Hex } from "viem";
import { nativeAsset, parseAssetId } from "../chains/caip.ts";
import { readNativeBalanceAt, readTokenBalanceAt } from "../chains/evm/balances.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { type Chain, getChain } from "../chains/open.ts";
import { readFinalBalances } from "../chains/solana/balances.ts";
import type { SolanaChain } from "../chains/solana/open.ts";
import { insertGroups } from "../db/ledger.ts";
import {
  type BookSide,
  findHeights,
  keepReconciliation,
  listLaneAddresses,
  lockReconciliation,
  readBookSides,
  takeDueReconciliations,
} from "../db/reconciliations.ts";
import type { Db } from "../db/tables.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { accounts, laneDepositGroup } from "./ledger.ts";

/**
 * One account of the ledger and what the chain has of it, minor units: `held` should be what is `booked` and what is in
 * flight (seen, and not booked yet) together. Money that left the treasury without us counts as booked until somebody
 * says why it went. `difference` is what the chain has more.
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
/** What the books and the rows say of an account. */
type Claim = Pick<ReconcileLine, "account" | "asset" | "booked" | "inFlight"> & {
  /** What it was found to have been given later, and may have had before. */
  given: bigint;
};

/**
 * Compares the books with a chain at a block (the newest that is final and booked, when unset): the treasury's tokens
 * and the lanes' native money. Native money leaves no log when it comes, and nobody but the operator gives a lane any:
 * what a lane has more than the books say is booked as capital. Every other difference is kept, logged and told.
 * Refuses with `invalid_state` for a chain that is not watched or a block that is not read or not to be had. Throws
 * ChainFault when the node does not know the block's state any more.
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
    // What was booked while the chain was asked is for later blocks, or a deposit that another run has found.
    const found = (await listClaims(db, chain, block)).flatMap((claim) => {
      const has = held.get(nameOf(claim));
      return has === undefined ? [] : [{ chain: chain.chain, block, ...compare(claim, has) }];
    });
    const told = await bookDeposits(deps, db, found);
    if (args.block === undefined) await keep(deps, db, chain.chain, told);
    return told;
  });
  for (const { account, asset, difference } of lines)
    if (difference !== 0n)
      deps.log.error({ chain: chain.chain, block, account, asset, difference: String(difference) }, "the books differ");
  return done(lines);
}

function keep(deps: Deps, db: Db, chain: string, lines: readonly ReconcileLine[]): Promise<void> {
  const at = deps.now();
  const rows = lines.map(({ inFlight: in_flight, block: block_number, difference: _, ...line }) => ({
    ...line,
    ...{ block_number, in_flight, at },
  }));
  return keepReconciliation(db, chain, rows);
}

/** So long the watcher may take to book what is final on chain, milliseconds. */
const BOOKED_WITHIN_MS = 15_000;
/** How often the books of a chain are compared with it, milliseconds. */
const RECONCILE_EVERY_MS = 300_000;

/** Chains whose books are to be compared now, each once until the next time. */
export function takeReconciliations(deps: Pick<PaymentDeps, "db" | "chains" | "now">): Promise<string[]> {
  const now = deps.now();
  const againAt = new Date(now.getTime() + RECONCILE_EVERY_MS);
  return takeDueReconciliations(deps.db, { chains: [...deps.chains.keys()], now, againAt });
}

/** The treasury of every asset that we know or ever booked, and every lane's native money. */
async function listClaims(db: Db, chain: Chain, block: number): Promise<Claim[]> {
  const lanes = await listLaneAddresses(db, chain.chain);
  const names = [accounts.treasury, ...lanes.map(accounts.lane)];
  const sides = await readBookSides(db, { chain: chain.chain, block, accounts: names, treasury: chain.treasury });
  const sum = (wanted: (side: BookSide) => boolean) =>
    sides.filter(wanted).reduce((total, { amount }) => total + amount, 0n);
  const claim = (account: string, asset: string, isInFlight: (side: BookSide) => boolean): Claim => ({
    account,
    asset,
    booked: sum(
      (side) => (side.what === "booked" || side.what === "left") && side.account === account && side.asset === asset,
    ),
    inFlight: sum((side) => side.account === account && isInFlight(side)),
    given: sum(({ what, account: whose }) => what === "given" && whose === account),
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

/** What an account holds against what it should. */
function compare({ given, ...claim }: Claim, held: bigint) {
  const more = held - claim.booked - claim.inFlight;
  const early = more > 0n && given > 0n ? (more < given ? more : given) : 0n;
  return { ...claim, inFlight: claim.inFlight + early, held, difference: more - early };
}

/** What the chain has of accounts at a block. */
type Holdings = { block: number; held: ReadonlyMap<string, bigint> };

async function readHoldings(deps: Deps, chain: Chain, wanted: number | undefined): Promise<Result<Holdings>> {
  const heights = await findHeights(deps.db, chain.chain);
  if (!heights) return refuse("invalid_state", `${chain.chain} is not watched yet`);
  const claims = await listClaims(deps.db, chain, heights.final);
  if (chain.family === "solana") {
    if (wanted !== undefined) return refuse("invalid_state", "a Solana node tells only what accounts hold now");
    const holdings = await readSolana(chain, claims);
    if (await isBooked(deps, chain.chain, holdings.block)) return done(holdings);
    return refuse("invalid_state", `the watcher of ${chain.chain} does not come to slot ${holdings.block}`);
  }
  const block = wanted ?? heights.final;
  if (block > heights.read) return refuse("invalid_state", `${chain.chain} has been read up to block ${heights.read}`);
  const held = claims.map(async (claim) => [nameOf(claim), await readEvm(chain, claim, block)] as const);
  return done({ block, held: new Map(await Promise.all(held)) });
}

const nameOf = ({ account, asset }: Pick<Claim, "account" | "asset">) => `${account} ${asset}`;
const tokenOf = (asset: string) => (parseAssetId(asset)?.token ?? "") as Hex;
/** The address of a lane, of the name of its account. */
const laneOf = (account: string) => account.slice(accounts.lane("").length);

function readEvm(chain: EvmChain, { account, asset }: Claim, block: number): Promise<bigint> {
  if (account === accounts.treasury)
    return readTokenBalanceAt(chain, { token: tokenOf(asset), account: chain.treasury, block });
  return readNativeBalanceAt(chain, { account: laneOf(account) as Hex, block });
}

/** As of the slot that is final now. What has left the networks file cannot be found any more, and is left out. */
async function readSolana(chain: SolanaChain, claims: readonly Claim[]): Promise<Holdings> {
  const places = claims.flatMap((claim) => {
    const tokenAccount = chain.tokens.get(claim.asset)?.treasuryAccount;
    return claim.account === accounts.treasury && tokenAccount ? [{ name: nameOf(claim), tokenAccount }] : [];
  });
  const lanes = claims.filter(({ account }) => account !== accounts.treasury);
  const found = await readFinalBalances(chain, {
    tokenAccounts: places.map(({ tokenAccount }) => tokenAccount),
    lanes: lanes.map(({ account }) => laneOf(account)),
  });
  const named = [
    ...places.map(({ name }, index) => [name, found.tokens[index] ?? 0n] as const),
    ...lanes.map((claim, index) => [nameOf(claim), found.lanes[index] ?? 0n] as const),
  ];
  return { block: found.slot, held: new Map(named) };
}

/** True as soon as everything up to a height is booked; the watcher is given a while. */
async function isBooked(deps: Deps, chain: string, height: number): Promise<boolean> {
  for (const until = Date.now() + BOOKED_WITHIN_MS; ; ) {
    if (((await findHeights(deps.db, chain))?.final ?? 0) >= height) return true;
    if (Date.now() > until) return false;
    await delay(200);
  }
}

/** What lanes have been given, booked; the lines as they are then. */
async function bookDeposits(deps: Deps, db: Db, lines: readonly ReconcileLine[]): Promise<ReconcileLine[]> {
  const isDeposit = ({ account, difference }: ReconcileLine) => account !== accounts.treasury && difference > 0n;
  const deposits = lines.filter(isDeposit);
  await insertGroups(db, deposits.map(laneDepositGroup), deps.now());
  for (const { chain, account, difference } of deposits)
    deps.log.info({ chain, account, amount: String(difference) }, "a lane has been given native money");
  return lines.map((line) =>
    isDeposit(line) ? { ...line, booked: line.booked + line.difference, difference: 0n } : line,
  );
}
