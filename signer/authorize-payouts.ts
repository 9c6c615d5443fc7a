import { canonicalAddress, canonicalAsset } from "../chains/canonical-ids.ts";
import type { Token } from "../chains/chain.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { appendApproved } from "./audit/approved-payouts.ts";
import { noteRecorded } from "./claim-destinations.ts";
import { applyPaidDestination, findDestinationRefusal, recordDestination } from "./destinations.ts";
import type { AssetLimits, Limits } from "./limits.ts";
import { isNewMerchant } from "./new-merchants.ts";
import { chainOfAsset, type PayoutWithNonce, payoutNonce } from "./payout-nonce.ts";
import type { DepositClaim, DepositResult, PayoutRequest, PayoutResult, Refused } from "./protocol.ts";
import { listAssetsOf } from "./recorded-assets.ts";
import {
  findAuthorized,
  insertPayout,
  isOfOtherTreasury,
  listPaymentDeposits,
  listRefunds,
  sumDeposits,
  sumMerchantPayouts,
  sumWindow,
  wasAuthorized,
} from "./records.ts";
import { isTransientRefusal } from "./refusals.ts";
import { refuse } from "./refuse.ts";
import { findRetirementRefusal } from "./retired-treasuries.ts";
import { type DecimalAmount, findFundsRefusal, findLimitRefusal, findRefundRefusal } from "./rules.ts";
import { signAuthorized } from "./sign-payouts.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { findHoldEnd } from "./stops.ts";
import { inStoreTransaction } from "./store.ts";
import { readDeposits, reportDeposits } from "./verify-deposits.ts";
import { findReturnApprovers, verifyReturn } from "./verify-returns.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** What all decisions of a request have in common. `isHeld`: no destination applies at once, because of a stop. */
type Moment = { at: Date; limits: Limits | undefined; isHeld: boolean; retired: ReadonlyMap<string, Refused> };
/** What the files say about a payout's asset. */
type Decidable = Moment & { treasury: string; token: Token; limits: Limits; assetLimits: AssetLimits };
type Return = Extract<PayoutWithNonce, { kind: "return" }>;

/**
 * Decides on payouts and signs those that are authorized. First reads the deposits that the requests name from the chain. Then
 * records them, decides on all payouts and records these in one transaction, before any signature exists: if the process ends in
 * between, the same request is signed again and counts nothing more. Returns one result for each payout, in their order.
 */
export async function authorizePayouts(deps: SignerDeps, payouts: readonly PayoutRequest[]): Promise<PayoutResult[]> {
  const claims = payouts.flatMap((payout) => ("deposits" in payout ? payout.deposits : []));
  const recordDeposits = deps.readLimits() === undefined ? () => [] : await readDeposits(deps, claims);
  const decided = payouts.map((payout) => toDecided(deps, payout));
  const returns = await Promise.all(
    decided.map((one) => (one.kind === "return" ? verifyReturn(deps, one) : undefined)),
  );
  const unserved = await findUnserved(deps, decided);
  // Read again after the chain has answered: a pause applies at once.
  const limits = deps.readLimits();
  const { verified, refusals } = inStoreTransaction(deps.store, () => {
    const verified = recordDeposits();
    const results = new Map<DepositClaim, DepositResult>(
      claims.map((claim, at) => [claim, verified[at] ?? { ok: true }]),
    );
    const moment = { ...readMoment(deps, decided), limits };
    const refusals = decided.map((payout, index) => {
      const notReturned = returns[index];
      const refused = unserved.get(chainOfAsset(payout.asset)) ?? decide(deps, payout, { ...moment, notReturned });
      return refused && explain(refused, payouts[index], results);
    });
    return { verified, refusals };
  });
  reportDeposits(deps, claims, verified);
  const authorized = decided.filter((_payout, index) => refusals[index] === undefined);
  const signed = new Map((await signAuthorized(deps, authorized)).map((result, at) => [authorized[at], result]));
  return decided.map((payout, index) => {
    const result = refusals[index] ?? signed.get(payout) ?? refuse("signer_unavailable");
    report(deps, payout, result);
    return result;
  });
}

/** Returns the chains of payouts that do not match the networks file, with the refusal. */
async function findUnserved(
  { chains, checkChain }: SignerDeps,
  payouts: readonly PayoutRequest[],
): Promise<ReadonlyMap<string, Refused>> {
  const ids = [...new Set(payouts.map(({ asset }) => chainOfAsset(asset)))].filter((id) => chains.has(id));
  const checked = await Promise.all(ids.map(async (id) => ({ id, refused: await checkChain(id) })));
  return new Map(checked.flatMap(({ id, refused }) => (refused ? [[id, refused] as const] : [])));
}

/** Reads what no decision of the request changes. Call it in the transaction that decides. */
function readMoment({ store, chains, now }: SignerDeps, payouts: readonly PayoutRequest[]): Omit<Moment, "limits"> {
  const at = now();
  const retired = [...new Set(payouts.map(({ asset }) => chainOfAsset(asset)))].flatMap((id): [string, Refused][] => {
    const chain = chains.get(id);
    const refused = chain && findRetirementRefusal(store, chain);
    return refused ? [[id, refused]] : [];
  });
  return { at, isHeld: findHoldEnd(store, at) > 0, retired: new Map(retired) };
}

/** Returns a payout in its canonical form, with its nonce. */
function toDecided({ deployment }: SignerDeps, payout: PayoutRequest): PayoutWithNonce {
  const asset = canonicalAsset(payout.asset);
  const canonical = { ...payout, asset, receiver: canonicalAddress(chainOfAsset(asset), payout.receiver) };
  return { ...canonical, nonce: payoutNonce(deployment, canonical) };
}

/** Decides on one payout and records it when it is authorized. */
function decide(
  deps: SignerDeps,
  payout: PayoutWithNonce,
  { notReturned, ...moment }: Moment & { notReturned: Refused | undefined },
): Refused | undefined {
  const { limits } = moment;
  if (!limits) return refuse("limits_invalid");
  if (limits.paused) return refuse("paused");
  const chain = deps.chains.get(chainOfAsset(payout.asset));
  const token = chain?.tokens.get(payout.asset);
  const assetLimits = limits.assets[payout.asset];
  if (!chain || !token || !assetLimits) return refuse("unknown_asset");
  if (!getChainDriver(payout.asset).isAddress(payout.receiver)) return refuse("invalid_request");
  const { nonce } = payout;
  const { treasury } = chain;
  const retired = moment.retired.get(chain.chain);
  if (retired) return retired;
  if (isOfOtherTreasury(deps.store, { nonce, asset: payout.asset, treasury })) return refuse("treasury_changed");
  const decidable = { ...moment, treasury, token, limits, assetLimits };
  switch (payout.kind) {
    case "settlement":
    case "refund":
      return decideForMerchant(deps, decidable, payout);
    case "return":
      return notReturned ?? decideReturn(deps, decidable, payout);
  }
}

function decideForMerchant(
  deps: SignerDeps,
  { at, isHeld, treasury, token, limits, assetLimits }: Decidable,
  payout: Exclude<PayoutWithNonce, Return>,
): Refused | undefined {
  const { store } = deps;
  const { nonce, asset, amount, merchantId, receiver } = payout;
  const before = findAuthorized(store, { nonce, asset });
  const increase = amount > before ? amount - before : 0n;
  const paymentId = payout.kind === "refund" ? payout.paymentId : null;
  const waiting = { at, waitingHours: limits.destinationWaitingHours, isHeld, actor: deps.caller };
  const ofNewMerchant = isNewMerchant(store, merchantId, waiting);
  const day = { at, windowMs: DAY_MS };

  const reason =
    (paymentId === null ? undefined : findRefundReason(deps, { paymentId, increase }, payout)) ??
    findFundsRefusal({
      ...listFunds(deps, merchantId, token),
      increase: { amount: increase, decimals: token.decimals },
    }) ??
    findLimitRefusal(assetLimits, {
      amount,
      increase,
      assetHour: sumWindow(store, { asset }, { at, windowMs: HOUR_MS }),
      merchantDay: sumWindow(store, { asset, merchantId }, day),
      newMerchantsDay: ofNewMerchant ? sumWindow(store, { asset, onlyNew: true }, day) : undefined,
    });
  if (reason) return refuse(reason);
  if (payout.kind === "settlement") {
    // A destination is recorded only for a payout that everything else allows, so that invented settlements register none.
    const destination = { merchantId, asset, receiver };
    noteRecorded(deps, destination, recordDestination(store, destination, waiting));
    applyPaidDestination(store, destination, waiting);
    const refused = findDestinationRefusal(store, destination);
    if (refused) return refuse(refused);
  }
  if (!wasAuthorized(store, { nonce, treasury, asset, amount, receiver }))
    insertPayout(
      store,
      { nonce, kind: payout.kind, treasury, asset, amount, counted: increase, receiver, merchantId, paymentId },
      at,
      { ofNewMerchant },
    );
  return undefined;
}

function decideReturn(
  deps: SignerDeps,
  { at, treasury, limits, assetLimits }: Decidable,
  payout: Return,
): Refused | undefined {
  const { nonce, asset, amount, receiver } = payout;
  const isRecorded = wasAuthorized(deps.store, { nonce, treasury, asset, amount, receiver });
  const approved = findReturnApprovers(deps, payout, { limits, at, isRecorded });
  if ("reason" in approved) return approved;
  const before = findAuthorized(deps.store, { nonce, asset });
  const increase = amount > before ? amount - before : 0n;
  const assetHour = sumWindow(deps.store, { asset }, { at, windowMs: HOUR_MS });
  const reason = findLimitRefusal(assetLimits, {
    amount,
    increase,
    assetHour,
    merchantDay: undefined,
    newMerchantsDay: undefined,
  });
  if (reason) return refuse(reason);
  const row = {
    nonce,
    kind: payout.kind,
    treasury,
    asset,
    amount,
    counted: increase,
    receiver,
    merchantId: null,
    paymentId: null,
  };
  if (!isRecorded) {
    insertPayout(deps.store, row, at);
    appendApproved(deps.store, {
      row,
      action: "return.signed",
      subject: `${payout.txHash}/${payout.logIndex}`,
      ...approved,
      at,
    });
  }
  return undefined;
}

function findRefundReason(
  { store }: SignerDeps,
  { paymentId, increase }: { paymentId: string; increase: bigint },
  { nonce, receiver, amount, asset, merchantId }: Exclude<PayoutWithNonce, Return>,
) {
  const of = { merchantId, paymentId, asset };
  const refund = { nonce, receiver, amount, increase };
  return findRefundRefusal(refund, listPaymentDeposits(store, of), listRefunds(store, of));
}

/** Returns the sums of a merchant's deposits and payouts in every asset of a currency, also in those that left the networks file. */
function listFunds({ store }: SignerDeps, merchantId: string, { peg }: Token) {
  const assets = listAssetsOf(store, peg);
  const sums = (sum: (of: { asset: string; merchantId: string }) => bigint): DecimalAmount[] =>
    assets.map(({ asset, decimals }) => ({ amount: sum({ asset, merchantId }), decimals }));
  return {
    deposits: sums((of) => sumDeposits(store, of)),
    payouts: sums((of) => sumMerchantPayouts(store, of)),
  };
}

/** Deposits that a refusal names. */
const NAMED_DEPOSITS = 5;

/** Names the deposits that are not verified as the reason of a payout that lacks money. A transient reason comes first. */
function explain(
  refused: Refused,
  payout: PayoutRequest | undefined,
  results: ReadonlyMap<DepositClaim, DepositResult>,
): Refused {
  const isShort = refused.reason === "funds_short" || refused.reason === "receiver_not_payer";
  if (!isShort || payout === undefined || !("deposits" in payout)) return refused;
  const failed = payout.deposits.flatMap((claim) => {
    const result = results.get(claim);
    return result === undefined || result.ok ? [] : { claim, reason: result.reason };
  });
  const first = failed.find(({ reason }) => isTransientRefusal(reason)) ?? failed[0];
  if (!first) return refused;
  const named = failed
    .slice(0, NAMED_DEPOSITS)
    .map(({ claim: { txHash, logIndex }, reason }) => `${txHash}/${logIndex} ${reason}`);
  const counts = `${failed.length} of ${payout.deposits.length} deposits are not verified`;
  return refuse(first.reason, `${counts}: ${named.join(", ")}`);
}

function report({ metrics, shortPayouts, log }: SignerDeps, payout: PayoutWithNonce, result: PayoutResult): void {
  const { kind, asset, amount } = payout;
  shortPayouts.note(payout, result);
  if (result.ok) {
    metrics.signerPayouts.inc({ kind });
    return;
  }
  metrics.signerRefusals.inc({ reason: result.reason });
  const merchant = "merchantId" in payout ? payout.merchantId : undefined;
  const { reason, detail } = result;
  log.warn({ kind, asset, amount: String(amount), merchant, reason, detail }, "payout is refused");
}
