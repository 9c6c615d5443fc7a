import type { Chain } from "../chains/chain.ts";
import { readAgreementThreshold } from "../chains/endpoint-agreement.ts";
import type { KnownMovement } from "../chains/final-transaction.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { deriveNonce, paymentKey } from "../chains/natural-key.ts";
import { insertAgreement, type LoneDeposit, listLone, listLoneAssets } from "./lone-deposits.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import { readTransactions } from "./read-transactions.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { checkClaim } from "./verify-deposits.ts";

/** Deposits that are read together: those of one page of a treasury's history on Solana. */
const PART = 1_000;
/** How many of them may have to be read by a call each. A limited endpoint that refuses one of the calls has shown none of them. */
const READ_ALONE = 100;

type Deps = Pick<SignerDeps, "store" | "chains" | "deployment" | "log" | "metrics" | "now">;

/**
 * Reads the deposits that one endpoint has shown from a second one, the oldest of each asset first, up to the first one that
 * two endpoints do not show. Sets the age of the oldest one that is left, for metrics. Never throws.
 */
export async function agreeDeposits(deps: Deps): Promise<void> {
  const left: LoneDeposit[] = [];
  for (const asset of listLoneAssets(deps.store)) {
    const chain = deps.chains.get(chainOfAsset(asset));
    const token = chain?.tokens.get(asset);
    // Those of an asset or an endpoint that the networks file has no more stay as they are.
    if (!chain || !token || readAgreementThreshold(chain.network, token) === undefined) continue;
    try {
      const open = await agreeAsset(deps, chain, asset);
      if (open) left.push(open);
    } catch (err) {
      deps.log.error({ err, asset }, "deposits cannot be read from a second endpoint");
      left.push(...listLone(deps.store, { asset, limit: 1 }));
    }
  }
  const now = deps.now().getTime();
  const ages = left.map(({ recordedAt }) => (now - recordedAt) / 1_000);
  deps.metrics.signerLoneAgeSeconds.set(Math.max(0, ...ages));
}

/** Returns the first deposit of the asset that two endpoints do not show; undefined if they show all. */
async function agreeAsset(deps: Deps, chain: Chain, asset: string): Promise<LoneDeposit | undefined> {
  for (;;) {
    const listed = listLone(deps.store, { asset, limit: PART });
    const lone = listed.slice(0, findEnd(listed));
    // While an endpoint is down, each run asks for one deposit in vain, and not for all of them.
    const oldest = await findShown(deps, chain, lone.slice(0, 1));
    const others = oldest.size > 0 ? await findShown(deps, chain, lone.slice(1)) : [];
    const shown = new Set([...oldest, ...others]);
    const open = lone.find((one) => !shown.has(one));
    const last = lone[(open === undefined ? lone.length : lone.indexOf(open)) - 1];
    if (last) insertAgreement(deps.store, last, deps.now());
    if (open) {
      const { txHash, logIndex, amount, merchantId } = open;
      const named = { asset, txHash, logIndex, amount: String(amount), merchantId };
      deps.log.warn(named, "a deposit that one endpoint has shown is not shown by two");
      return open;
    }
    if (lone.length === listed.length && listed.length < PART) return undefined;
  }
}

/** Returns how many of these deposits are read together. Signed bytes describe those that a page of the treasury's history shows. */
function findEnd(listed: readonly LoneDeposit[]): number {
  const alone = listed.flatMap(({ isBySignedBytes }, at) => (isBySignedBytes ? [] : [at]));
  return alone[READ_ALONE] ?? listed.length;
}

/** Returns those of the deposits that two endpoints show as they are recorded. */
async function findShown(deps: Deps, chain: Chain, lone: readonly LoneDeposit[]): Promise<Set<LoneDeposit>> {
  const shown = new Set<LoneDeposit>();
  for (const [treasury, some] of Map.groupBy(lone, (one) => one.treasury)) {
    // The treasury may have been replaced since.
    const of = treasury === chain.treasury ? chain : getChainDriver(chain.chain).withTreasury(chain, treasury);
    const hashes = [...new Set(some.map(({ txHash }) => txHash))];
    const transactions = await readTransactions(deps, of, hashes, { known: listKnown(deps, of, some), agree: "all" });
    for (const one of some) {
      const checked = checkClaim(deps, of, { claim: one, agree: "all" }, transactions.get(one.txHash));
      const isSame = checked?.ok && checked.deposit.amount === one.amount && checked.deposit.payer === one.payer;
      if (isSame) shown.add(one);
    }
  }
  return shown;
}

/** Returns the movements of the deposits that signed bytes describe, by the hash of the transaction. */
function listKnown(
  { deployment }: Deps,
  { treasury: receiver, tokens }: Chain,
  lone: readonly LoneDeposit[],
): ReadonlyMap<string, KnownMovement> {
  const known = new Map<string, KnownMovement>();
  for (const { isBySignedBytes, asset, merchantId, paymentId, ...one } of lone) {
    const token = tokens.get(asset)?.token;
    if (!isBySignedBytes || token === undefined) continue;
    const { txHash, logIndex, payer, amount, blockNumber } = one;
    const authorizationNonce = deriveNonce(deployment, paymentKey({ merchantId, paymentId }));
    known.set(txHash, { txHash, logIndex, token, payer, receiver, amount, authorizationNonce, blockNumber });
  }
  return known;
}
