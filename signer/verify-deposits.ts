import { canonicalAddress, canonicalAsset } from "../chains/canonical-ids.ts";
import { isTransientChainError } from "../chains/errors.ts";
import type { FinalTransaction } from "../chains/final-transaction.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { deriveNonce, paymentKey, returnKey } from "../chains/natural-key.ts";
import type { Chain } from "../chains/open-chains.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import type { DepositClaim, DepositResult, Refused } from "./protocol.ts";
import { type Deposit, findAuthorized, findDeposit, insertDeposits } from "./records.ts";
import { refuse } from "./refuse.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { inStoreTransaction } from "./store.ts";

type Deps = Pick<SignerDeps, "store" | "chains" | "deployment" | "log" | "metrics" | "now">;
type Checked = { ok: true; deposit: Deposit } | Refused;

/**
 * Verifies deposits on chain and records them, so that each log counts once. A deposit that is recorded costs no call. Returns
 * one result for each, in their order.
 */
export async function verifyDeposits(deps: Deps, claims: readonly DepositClaim[]): Promise<DepositResult[]> {
  const known = claims.map((claim) => findRecorded(deps, claim));
  const open = claims.filter((_claim, index) => known[index] === undefined);
  const checked = new Map<DepositClaim, Checked>();
  for (const [id, some] of Map.groupBy(open, ({ asset }) => chainOfAsset(asset)))
    for (const [index, result] of (await checkOnChain(deps, id, some)).entries()) {
      const claim = some[index];
      if (claim) checked.set(claim, result);
    }
  const verified = [...checked.values()].filter(({ ok }) => ok);
  const taken = verified.length === 0 ? new Map<DepositClaim, DepositResult>() : recordVerified(deps, checked);
  return claims.map((claim, index): DepositResult => {
    const result = known[index] ?? taken.get(claim) ?? checked.get(claim) ?? refuse("deposit_not_found");
    deps.metrics.signerDeposits.inc({ result: result.ok ? "verified" : result.reason });
    if (!result.ok)
      deps.log.warn({ ...claim, reason: result.reason, detail: result.detail }, "deposit is not verified");
    return result.ok ? { ok: true } : result;
  });
}

/**
 * Records verified deposits. Returns the results of claims whose log was recorded while the chain was read: as another
 * deposit, or as a return to its sender. Such a log must not back a payout as well.
 */
function recordVerified(
  deps: Deps,
  checked: ReadonlyMap<DepositClaim, Checked>,
): ReadonlyMap<DepositClaim, DepositResult> {
  const taken = new Map<DepositClaim, DepositResult>();
  inStoreTransaction(deps.store, () => {
    const deposits = [...checked].flatMap(([claim, one]): Deposit[] => {
      const recorded = one.ok ? findRecorded(deps, claim) : undefined;
      if (recorded) taken.set(claim, recorded);
      return one.ok && !recorded ? [one.deposit] : [];
    });
    insertDeposits(deps.store, deposits, deps.now());
  });
  return taken;
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

async function checkOnChain(deps: Deps, id: string, claims: readonly DepositClaim[]): Promise<Checked[]> {
  const chain = deps.chains.get(id);
  if (!chain) return claims.map(() => refuse("unknown_asset", `the signer's networks file lacks ${id}`));
  const transactions = await readTransactions(deps, chain, [...new Set(claims.map(({ txHash }) => txHash))]);
  if (!transactions) return claims.map(() => refuse("chain_unavailable"));
  return claims.map((claim) => checkClaim(deps, chain, claim, transactions.get(claim.txHash)));
}

/** Reads the transactions from the signer's own endpoints. Returns undefined while they do not answer. */
async function readTransactions(deps: Deps, chain: Chain, hashes: readonly string[]) {
  try {
    return await getChainDriver(chain.chain).readFinalMovements(chain, hashes);
  } catch (err) {
    if (!isTransientChainError(err)) throw err;
    deps.log.warn({ err, chain: chain.chain }, "deposits cannot be verified: the chain cannot be read");
    return undefined;
  }
}

/** Compares a claim with its transaction. Pure. */
function checkClaim(
  { deployment }: Pick<Deps, "deployment">,
  chain: Chain,
  claim: DepositClaim,
  transaction: FinalTransaction | undefined,
): Checked {
  if (transaction === undefined || transaction.state === "not_found") return refuse("deposit_not_found");
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
