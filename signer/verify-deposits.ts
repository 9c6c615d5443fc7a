import { canonicalAddress, canonicalAsset } from "../chains/canonical-ids.ts";
import type { Chain } from "../chains/chain.ts";
import { readAgreementThreshold } from "../chains/endpoint-agreement.ts";
import type { FinalReading, FinalTransaction } from "../chains/final-transaction.ts";
import { deriveNonce, paymentKey, returnKey } from "../chains/natural-key.ts";
import { insertLone, sumLone } from "./lone-deposits.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import type { DepositClaim, DepositResult, Refused } from "./protocol.ts";
import { readTransactions } from "./read-transactions.ts";
import { type Deposit, findAuthorized, findDeposit, insertDeposits, mayHaveReturns } from "./records.ts";
import { refuse } from "./refuse.ts";
import { findRetirementRefusal, isRebuilding, listDepositTreasuries } from "./retired-treasuries.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { inStoreTransaction } from "./store.ts";

type Deps = Pick<SignerDeps, "store" | "chains" | "checkChain" | "deployment" | "log" | "metrics" | "now">;
/**
 * A deposit that the chain shows, and the treasury that received it. `isLone`: one endpoint has shown it, and a second one has to show it
 * later. `isBySignedBytes`: the signed bytes of its transaction say what moves.
 */
type Checked = { ok: true; deposit: Deposit; treasury: string; isLone: boolean; isBySignedBytes: boolean } | Refused;

type Agree = NonNullable<FinalReading["agree"]>;

const TOO_MANY = "deposits that only one endpoint has shown reach the sum that needs two";

/** Deposits that are read and recorded together: a claim that ends early has recorded its first ones. */
const PART = 100;

/** Verifies deposits as `readDeposits` does, and records all of them. Returns one result for each, in their order. */
export async function verifyDeposits(deps: Deps, claims: readonly DepositClaim[]): Promise<DepositResult[]> {
  const results = (await readDeposits(deps, claims))();
  reportDeposits(deps, claims, results);
  return results;
}

/**
 * Verifies deposits on chain and records them in parts, so that each log counts once. A deposit that is recorded costs no call,
 * and one that cannot be verified holds up no other. Returns the function that records the last part, in the caller's
 * transaction if there is one, and returns one result for each deposit, in their order. Report them (`reportDeposits`) when
 * that transaction has committed.
 */
export async function readDeposits(deps: Deps, claims: readonly DepositClaim[]): Promise<() => DepositResult[]> {
  const results = new Map<DepositClaim, DepositResult>();
  const open: DepositClaim[] = [];
  let read: ReadonlyMap<DepositClaim, Checked> = new Map();
  const record = () => {
    for (const [claim, result] of recordVerified(deps, read)) results.set(claim, result);
  };
  const findRecorded = openRecords(deps);
  for (const claim of claims) {
    const known = findRecorded(claim);
    if (known) results.set(claim, known);
    else open.push(claim);
  }
  for (const [id, some] of Map.groupBy(open, ({ asset }) => chainOfAsset(asset)))
    for (const part of splitByTransaction(some)) {
      record();
      read = await readPart(deps, id, part);
      // The endpoints are down: the next parts would wait for them too.
      if (read.values().every((result) => !result.ok && result.reason === "chain_unavailable")) break;
    }
  return () => {
    record();
    return claims.map((claim) => {
      const result = results.get(claim) ?? refuse("chain_unavailable");
      return result.ok ? { ok: true } : result;
    });
  };
}

/** Counts the results of deposits and logs the refused ones. @param results one for each claim, in their order */
export function reportDeposits(
  { metrics, log }: Deps,
  claims: readonly DepositClaim[],
  results: readonly DepositResult[],
): void {
  for (const [at, result] of results.entries()) {
    metrics.signerDeposits.inc({ result: result.ok ? "verified" : result.reason });
    const claim = claims[at];
    if (result.ok || claim === undefined) continue;
    const { transaction: _bytes, ...named } = claim;
    log.warn({ ...named, reason: result.reason, detail: result.detail }, "deposit is not verified");
  }
}

/** Splits claims into parts, with the claims of a transaction next to each other. Pure. */
function splitByTransaction(claims: readonly DepositClaim[]): DepositClaim[][] {
  const sorted = [...Map.groupBy(claims, ({ txHash }) => txHash).values()].flat();
  return Array.from({ length: Math.ceil(sorted.length / PART) }, (_, at) => sorted.slice(at * PART, (at + 1) * PART));
}

/**
 * Records verified deposits. A claim whose log was recorded while the chain was read, as another deposit or as a return to its
 * sender, gets the result of that record: such a log must not back a payout as well. Records nothing for a treasury whose
 * rebuild has ended meanwhile.
 */
function recordVerified(
  deps: Deps,
  checked: ReadonlyMap<DepositClaim, Checked>,
): ReadonlyMap<DepositClaim, DepositResult> {
  const verified = [...checked].flatMap(([claim, one]) => (one.ok ? [{ claim, ...one }] : []));
  if (verified.length === 0) return checked;
  const results = new Map<DepositClaim, DepositResult>(checked);
  inStoreTransaction(deps.store, () => {
    const isOpen = findOpenTreasuries(deps, new Set(verified.map(({ deposit }) => deposit.chain)));
    const findRecorded = openRecords(deps);
    const fits = openLoneLimit(deps);
    const added = verified.filter((one) => {
      const refused = isOpen(one.deposit.chain, one.treasury) ? undefined : refuse("treasury_retired");
      // Others may have been recorded since the chain was read.
      const recorded = refused ?? findRecorded(one.claim) ?? (fits(one) ? undefined : refuse("not_final", TOO_MANY));
      if (recorded) results.set(one.claim, recorded);
      return !recorded;
    });
    const deposits = added.map(({ deposit }) => deposit);
    insertDeposits(deps.store, deposits, deps.now());
    insertLone(
      deps.store,
      added.filter(({ isLone }) => isLone),
    );
  });
  return results;
}

/**
 * Returns a function that tells whether deposits into a treasury are recorded now. A rebuild may have ended while the chain was
 * read: then a deposit into a retired treasury would come without its payouts.
 */
function findOpenTreasuries({ store, chains }: Deps, ids: ReadonlySet<string>) {
  const open = new Set(
    [...chains.values()]
      .filter(({ chain }) => ids.has(chain))
      .flatMap((one) => listDepositTreasuries(store, one).map(({ chain, treasury }) => `${chain} ${treasury}`)),
  );
  return (chain: string, treasury: string) => open.has(`${chain} ${treasury}`);
}

/**
 * Returns a function that returns the result of a claim on a recorded log; undefined when the chain has to be read. Use it before
 * anything else is recorded: most stores have no return, and for them it derives no nonce of one.
 */
function openRecords({ store, deployment }: Deps): (claim: DepositClaim) => DepositResult | undefined {
  const mayBeReturned = mayHaveReturns(store);
  return (claim) => {
    const { merchantId, paymentId, txHash, logIndex } = claim;
    const asset = canonicalAsset(claim.asset);
    const place = { chain: chainOfAsset(asset), txHash, logIndex };
    const isReturned = () => findAuthorized(store, { nonce: deriveNonce(deployment, returnKey(place)), asset }) > 0n;
    if (mayBeReturned && isReturned()) return refuse("deposit_mismatch", "the money was returned to its sender");
    const row = findDeposit(store, place);
    if (!row) return undefined;
    const isSame = row.merchantId === merchantId && row.paymentId === paymentId && row.asset === asset;
    return isSame ? { ok: true } : refuse("deposit_mismatch", "the log is recorded for another payment");
  };
}

/**
 * Returns a function that tells whether a deposit may be recorded: the sum of an asset's deposits that one endpoint has shown stays below
 * the amount that needs two, however many deposits, requests and merchants it comes from. A deposit that two have shown always may.
 */
function openLoneLimit({ store, chains }: Deps) {
  const sums = new Map<string, bigint>();
  return ({ deposit: { chain: id, asset, amount }, isLone }: Extract<Checked, { ok: true }>): boolean => {
    const chain = chains.get(id);
    const threshold = chain && findThreshold(chain, asset);
    if (!isLone || threshold === undefined) return true;
    const sum = (sums.get(asset) ?? sumLone(store, asset)) + amount;
    if (sum >= threshold) return false;
    sums.set(asset, sum);
    return true;
  };
}

function findThreshold(chain: Chain, asset: string): bigint | undefined {
  const token = chain.tokens.get(asset);
  return token && readAgreementThreshold(chain.network, token);
}

/** Reads claims from one endpoint, and those that do not fit into what one endpoint may show from two. */
async function readPart(
  deps: Deps,
  id: string,
  claims: readonly DepositClaim[],
): Promise<ReadonlyMap<DepositClaim, Checked>> {
  const checked = await checkOnChain(deps, id, claims, "large");
  const fits = openLoneLimit(deps);
  const others = [...checked].filter(([, one]) => one.ok && !fits(one)).map(([claim]) => claim);
  if (others.length === 0) return checked;
  return new Map([...checked, ...(await checkOnChain(deps, id, others, "all"))]);
}

async function checkOnChain(
  deps: Deps,
  id: string,
  claims: readonly DepositClaim[],
  agree: Agree,
): Promise<ReadonlyMap<DepositClaim, Checked>> {
  const chain = deps.chains.get(id);
  if (!chain) {
    const refused = refuse("unknown_asset", `the signer's networks file lacks ${id}`);
    return new Map(claims.map((claim) => [claim, refused]));
  }
  const treasuries = listDepositTreasuries(deps.store, chain);
  const refused = treasuries.length === 0 ? findRetirementRefusal(deps.store, chain) : await deps.checkChain(id);
  const checked = new Map<DepositClaim, Checked>();
  // More than one only while a store that was lost is rebuilt.
  for (const one of refused ? [] : treasuries) {
    const open = claims.filter((claim) => !checked.has(claim));
    const hashes = [...new Set(open.map(({ txHash }) => txHash))];
    const transactions = await readTransactions(deps, one, hashes, { signed: listSignedBytes(open), agree });
    for (const claim of open) {
      const result = checkClaim(deps, one, { claim, agree }, transactions.get(claim.txHash));
      if (result) checked.set(claim, result);
    }
  }
  const elsewhere = isRebuilding(deps.store)
    ? refuse("treasury_unknown")
    : refuse("deposit_not_found", "the transaction moves nothing into the treasury there");
  return new Map(claims.map((claim) => [claim, refused ?? checked.get(claim) ?? elsewhere]));
}

function listSignedBytes(claims: readonly DepositClaim[]): ReadonlyMap<string, Uint8Array> {
  const signed = claims.flatMap(({ txHash, transaction }): [string, Uint8Array][] =>
    transaction === undefined ? [] : [[txHash, Buffer.from(transaction, "base64")]],
  );
  return new Map(signed);
}

/**
 * Compares a claim with its transaction, which is undefined if it could not be read. Returns undefined if the transaction moves
 * nothing into the treasury there. `agree`: how the transaction was read. Pure.
 */
export function checkClaim(
  { deployment }: Pick<Deps, "deployment">,
  chain: Chain,
  { claim, agree }: { claim: DepositClaim; agree: Agree },
  transaction: FinalTransaction | undefined,
): Checked | undefined {
  if (transaction === undefined) return refuse("chain_unavailable");
  if (transaction.state === "not_found") return refuse("deposit_not_found");
  if (transaction.state === "not_final") return refuse("not_final");
  const asset = canonicalAsset(claim.asset);
  const token = chain.tokens.get(asset);
  if (!token) return refuse("unknown_asset");
  const { treasury } = chain;
  const movement = transaction.movements.find(({ logIndex }) => logIndex === claim.logIndex);
  if (movement?.receiver !== treasury) return undefined;
  if (movement.token !== token.token || movement.payer === treasury)
    return refuse("deposit_mismatch", "the movement is no deposit of the asset into the treasury");
  const { merchantId, paymentId, txHash, logIndex } = claim;
  if (movement.authorizationNonce !== deriveNonce(deployment, paymentKey({ merchantId, paymentId })))
    return refuse("deposit_mismatch", "the movement's nonce belongs to another payment or merchant");
  const payer = canonicalAddress(chain.chain, movement.payer);
  const { amount, blockNumber } = movement;
  const deposit = { chain: chain.chain, txHash, logIndex, asset, amount, payer, merchantId, paymentId, blockNumber };
  const threshold = findThreshold(chain, asset);
  // A transaction with a large amount was read from two endpoints in any case.
  const isLone = agree === "large" && threshold !== undefined && amount < threshold;
  return { ok: true, deposit, treasury, isLone, isBySignedBytes: transaction.isBySignedBytes === true };
}
