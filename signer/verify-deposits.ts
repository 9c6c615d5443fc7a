import { canonicalAddress, canonicalAsset } from "../chains/canonical-ids.ts";
import type { FinalTransaction } from "../chains/final-transaction.ts";
import { deriveNonce, paymentKey, returnKey } from "../chains/natural-key.ts";
import type { Chain } from "../chains/open-chains.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import type { DepositClaim, DepositResult, Refused } from "./protocol.ts";
import { readTransactions } from "./read-transactions.ts";
import { type Deposit, findAuthorized, findDeposit, insertDeposits } from "./records.ts";
import { refuse } from "./refuse.ts";
import { findRetirementRefusal } from "./retired-treasuries.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { inStoreTransaction } from "./store.ts";

type Deps = Pick<SignerDeps, "store" | "chains" | "checkChain" | "deployment" | "log" | "metrics" | "now">;
type Checked = { ok: true; deposit: Deposit } | Refused;

/** Deposits that are recorded together: a claim that ends early has recorded its first ones. */
const PART = 100;

/**
 * Verifies deposits on chain and records them in parts, so that each log counts once. A deposit that is recorded costs no call,
 * and one that cannot be verified holds up no other. Returns one result for each, in their order.
 */
export async function verifyDeposits(deps: Deps, claims: readonly DepositClaim[]): Promise<DepositResult[]> {
  const results = new Map<DepositClaim, DepositResult>();
  const open: DepositClaim[] = [];
  for (const claim of claims) {
    const known = findRecorded(deps, claim);
    if (known) results.set(claim, known);
    else open.push(claim);
  }
  for (const [id, some] of Map.groupBy(open, ({ asset }) => chainOfAsset(asset)))
    for (const part of splitByTransaction(some)) {
      const checked = recordVerified(deps, await checkOnChain(deps, id, part));
      for (const [claim, result] of checked) results.set(claim, result);
      // The endpoints are down: the next parts would wait for them too.
      if (checked.values().every((result) => !result.ok && result.reason === "chain_unavailable")) break;
    }
  return claims.map((claim): DepositResult => {
    const result = results.get(claim) ?? refuse("chain_unavailable");
    deps.metrics.signerDeposits.inc({ result: result.ok ? "verified" : result.reason });
    if (!result.ok)
      deps.log.warn({ ...claim, reason: result.reason, detail: result.detail }, "deposit is not verified");
    return result.ok ? { ok: true } : result;
  });
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
  if (checked.values().every(({ ok }) => !ok)) return checked;
  const results = new Map<DepositClaim, DepositResult>(checked);
  inStoreTransaction(deps.store, () => {
    const deposits = [...checked].flatMap(([claim, one]): Deposit[] => {
      // A rebuild may have ended while the chain was read.
      const recorded = one.ok ? (findRetired(deps, one.deposit) ?? findRecorded(deps, claim)) : undefined;
      if (recorded) results.set(claim, recorded);
      return one.ok && !recorded ? [one.deposit] : [];
    });
    insertDeposits(deps.store, deposits, deps.now());
  });
  return results;
}

/** Returns the result of a claim on a recorded log; undefined when the chain has to be read. */
function findRecorded({ store, deployment }: Deps, claim: DepositClaim): DepositResult | undefined {
  const { merchantId, paymentId, txHash, logIndex } = claim;
  const asset = canonicalAsset(claim.asset);
  const place = { chain: chainOfAsset(asset), txHash, logIndex };
  if (findAuthorized(store, { nonce: deriveNonce(deployment, returnKey(place)), asset }) > 0n)
    return refuse("deposit_mismatch", "the money was returned to its sender");
  const row = findDeposit(store, place);
  if (!row) return undefined;
  const isSame = row.merchantId === merchantId && row.paymentId === paymentId && row.asset === asset;
  return isSame ? { ok: true } : refuse("deposit_mismatch", "the log is recorded for another payment");
}

async function checkOnChain(
  deps: Deps,
  id: string,
  claims: readonly DepositClaim[],
): Promise<ReadonlyMap<DepositClaim, Checked>> {
  const chain = deps.chains.get(id);
  const refused = chain
    ? (findRetired(deps, { chain: id }) ?? (await deps.checkChain(id)))
    : refuse("unknown_asset", `the signer's networks file lacks ${id}`);
  if (!chain || refused) return new Map(claims.map((claim) => [claim, refused ?? refuse("unknown_asset")]));
  const transactions = await readTransactions(deps, chain, [...new Set(claims.map(({ txHash }) => txHash))]);
  return new Map(claims.map((claim) => [claim, checkClaim(deps, chain, claim, transactions.get(claim.txHash))]));
}

/** Returns the refusal of a treasury whose rebuild has ended: a deposit would come without its payouts. */
function findRetired({ store, chains }: Deps, { chain: id }: { chain: string }): Refused | undefined {
  const chain = chains.get(id);
  const retired = chain && findRetirementRefusal(store, chain);
  return retired?.reason === "treasury_retired" ? retired : undefined;
}

/** Compares a claim with its transaction, which is undefined if it could not be read. Pure. */
function checkClaim(
  { deployment }: Pick<Deps, "deployment">,
  chain: Chain,
  claim: DepositClaim,
  transaction: FinalTransaction | undefined,
): Checked {
  if (transaction === undefined) return refuse("chain_unavailable");
  if (transaction.state === "not_found") return refuse("deposit_not_found");
  if (transaction.state === "not_final") return refuse("not_final");
  const asset = canonicalAsset(claim.asset);
  const token = chain.tokens.get(asset);
  if (!token) return refuse("unknown_asset");
  const movement = transaction.movements.find(({ logIndex }) => logIndex === claim.logIndex);
  if (!movement) return refuse("deposit_not_found", "the transaction has no such movement");
  if (movement.token !== token.token || movement.receiver !== chain.treasury || movement.payer === chain.treasury)
    return refuse("deposit_mismatch", "the movement is no deposit of the asset into the treasury");
  const { merchantId, paymentId, txHash, logIndex } = claim;
  if (movement.authorizationNonce !== deriveNonce(deployment, paymentKey({ merchantId, paymentId })))
    return refuse("deposit_mismatch", "the movement's nonce belongs to another payment or merchant");
  const payer = canonicalAddress(chain.chain, movement.payer);
  const { amount, blockNumber } = movement;
  const deposit = { chain: chain.chain, txHash, logIndex, asset, amount, payer, merchantId, paymentId, blockNumber };
  return { ok: true, deposit };
}
