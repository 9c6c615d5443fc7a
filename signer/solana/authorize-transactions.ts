import { canonicalAsset } from "../../chains/canonical-ids.ts";
import { ChainError } from "../../chains/errors.ts";
import { type Account, readAccountsFromEach } from "../../chains/solana/cluster-state.ts";
import { listNonceAddresses, parseNonce, readNonces } from "../../chains/solana/nonce-accounts.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { findMarker, isMarker, MAX_MARKERS_PER_CLOSE } from "../../chains/solana/payout-markers.ts";
import { isColdTransfer } from "../move-excess.ts";
import { chainOfAsset } from "../payout-nonce.ts";
import type { Refused } from "../protocol.ts";
import { refuse } from "../refuse.ts";
import { findRetirementRefusal } from "../retired-treasuries.ts";
import type { SignerDeps } from "../signer-deps.ts";
import { inStoreTransaction } from "../store.ts";
import { signClosingBytes, signPayoutBytes } from "./sign-bytes.ts";
import type {
  MarkerClosingRequest,
  MarkerClosingResult,
  PayoutTransactionRequest,
  PayoutTransactionResult,
} from "./transaction-protocol.ts";
import {
  findClosing,
  insertClosing,
  insertTransaction,
  isAuthorized,
  listTransactions,
  listWithdrawals,
  type SignedTransaction,
} from "./transaction-records.ts";

/**
 * Age that each transaction of a payout has before the payout's marker is closed, milliseconds. A blockhash is valid for a minute, or
 * until a cluster that stands still goes on. Workers ask after `payoutMarkerDays`, which is a day at least.
 */
const MIN_AGE_MS = 86_400_000;

type Opened = { chain: SolanaChain; key: NonNullable<ReturnType<SignerDeps["treasuryKeys"]["get"]>> };

/**
 * Signs a transaction of payouts as the treasury and as the authority of its durable nonce. Every payout must have been
 * authorized with this receiver and amount, or be the transfer to the cold address. A relayer of the networks file must pay the
 * fee, and the nonce must be the current value of one of the deployment's nonce accounts: a recent blockhash in its place would
 * make a transaction of whose end the signer knows nothing. The transaction is recorded before it is signed.
 */
export async function authorizePayoutTransaction(
  deps: SignerDeps,
  request: PayoutTransactionRequest,
): Promise<PayoutTransactionResult> {
  const given = { ...request, asset: canonicalAsset(request.asset) };
  const opened = await open(deps, chainOfAsset(given.asset), given.feePayer);
  if ("reason" in opened) return report(deps, opened);
  const { chain, key } = opened;
  if (!chain.tokens.has(given.asset)) return report(deps, refuse("unknown_asset"));
  const { nonceAccount, nonce } = given;
  const places = await listNonceAddresses(chain, deps.deployment);
  if (!places.some(({ address }) => address === nonceAccount))
    return report(deps, refuse("nonce_stale", "the nonce account is not one of the deployment"));
  const read = await ask(() => readNonces(chain, [nonceAccount], "confirmed"));
  if ("reason" in read) return report(deps, read);
  if (read.nonces[0] !== nonce) return report(deps, refuse("nonce_stale"));
  const refused = inStoreTransaction(deps.store, () => recordTransaction(deps, chain, { ...given, slot: read.slot }));
  return report(deps, refused ?? (await signPayoutBytes(chain, key, given)));
}

function recordTransaction(
  deps: SignerDeps,
  { chain, treasury }: SolanaChain,
  { asset, payouts, nonceAccount, nonce, slot }: PayoutTransactionRequest & { slot: number },
): Refused | undefined {
  const { store } = deps;
  const markers = payouts.map(({ memo }) => findMarker(treasury, memo).address);
  for (const { memo: nonce, amount, destination: receiver } of payouts) {
    const payout = { nonce, treasury, asset, amount, receiver };
    if (!isAuthorized(store, payout) && !isColdTransfer(deps, payout)) return refuse("payout_unauthorized", nonce);
  }
  if (markers.some((marker) => findClosing(store, { chain, marker }))) return refuse("payout_closed");
  for (const marker of markers) insertTransaction(store, { chain, marker, nonceAccount, nonce, slot }, deps.now());
  return undefined;
}

/**
 * Signs a transaction that closes markers. A marker is closed only when its payout is final, which its existence shows, and
 * no other transaction that was signed for the payout can still be included, because the durable nonce of each has a new
 * final value. From then on the payout is never signed again. The markers of withdrawals stay: no worker has to do with them.
 *
 * Without its marker, a transaction that can still be included pays a second time, and no record counts it. So two endpoints must show
 * all this, and each transaction must be old: the value that one endpoint showed as its nonce may have been a recent blockhash.
 */
export async function authorizeMarkerClosing(
  deps: SignerDeps,
  request: MarkerClosingRequest,
): Promise<MarkerClosingResult> {
  const opened = await open(deps, request.chain, request.feePayer);
  if ("reason" in opened) return report(deps, opened);
  const { chain, key } = opened;
  const kept = new Set(listWithdrawals(deps.store, chain).map((nonce) => findMarker(chain.treasury, nonce).address));
  const candidates = request.markers.flatMap((marker) => {
    const transactions = listTransactions(deps.store, { chain: chain.chain, marker: marker.address });
    return transactions.length > 0 && !kept.has(marker.address) ? [{ ...marker, transactions }] : [];
  });
  if (candidates.length === 0) return report(deps, refuse("marker_unknown"));
  const signedBefore = deps.now().getTime() - MIN_AGE_MS;
  const old = candidates.filter(({ transactions }) => transactions.every(({ signedAt }) => signedAt <= signedBefore));
  if (old.length === 0) return report(deps, refuse("marker_in_use", "a transaction was signed within a day"));
  const read = await ask(() => listEnded(chain, old));
  if ("reason" in read) return report(deps, read);
  const markers = inStoreTransaction(deps.store, () => recordClosings(deps, chain, read.ended));
  if (markers.length === 0) return report(deps, refuse("marker_in_use"));
  return report(deps, await signClosingBytes(chain, key, { ...request, markers }));
}

type Candidate = { address: string; lamports: bigint; transactions: readonly SignedTransaction[] };
/** A marker whose payout is final, and a final slot that includes the payout. */
type Ended = Candidate & { slot: number };

/**
 * Returns the markers of which two endpoints show that the payout is final and has no transaction left that could be included. Throws
 * ChainError `rpc_unreachable` if only one answers.
 */
async function listEnded(chain: SolanaChain, candidates: readonly Candidate[]): Promise<{ ended: Ended[] }> {
  const places = candidates.flatMap(({ transactions }) => transactions.map((one) => one.nonceAccount));
  const addresses = [...new Set([...candidates.map(({ address }) => address), ...places])];
  const states = await readAccountsFromEach(chain, addresses, "finalized");
  if (states.length < 2)
    throw new ChainError("rpc_unreachable", { detail: `${chain.chain} markers, from two endpoints` });
  const views = states.map(({ slot, accounts }) => ({
    slot,
    accounts: new Map(addresses.map((address, index) => [address, accounts[index]])),
  }));
  const ended = candidates.flatMap((candidate): Ended[] => {
    const slots = views.filter((view) => hasEnded(candidate, view)).map(({ slot }) => slot);
    // A single endpoint can neither lower nor raise the second highest one beyond what another one shows.
    const [, slot] = slots.toSorted((one, other) => other - one);
    return slot === undefined ? [] : [{ ...candidate, slot }];
  });
  return { ended };
}

/** Returns true if an endpoint shows that a payout is final and none of its transactions can be included. Pure. */
function hasEnded(
  { address, transactions }: Candidate,
  { slot, accounts }: { slot: number; accounts: ReadonlyMap<string, Account | undefined> },
): boolean {
  // An endpoint that lags behind the signing may return a value from before it.
  const isDead = (one: SignedTransaction) =>
    slot >= one.slot && parseNonce(accounts.get(one.nonceAccount)) !== one.nonce;
  return isMarker(accounts.get(address)) && transactions.every(isDead);
}

/** Records the closings of as many markers as fit. Leaves out those for which a transaction was signed meanwhile. */
function recordClosings({ store, now }: SignerDeps, { chain }: SolanaChain, ended: readonly Ended[]) {
  const unchanged = ended.filter(
    ({ address: marker, transactions }) => listTransactions(store, { chain, marker }).length === transactions.length,
  );
  const closed = unchanged.slice(0, MAX_MARKERS_PER_CLOSE);
  for (const { address: marker, slot } of closed) insertClosing(store, { chain, marker, slot }, now());
  return closed.map(({ address, lamports }) => ({ address, lamports }));
}

/** Returns the cluster and the treasury's key, if the limits file and the cluster allow signing and the fee payer is a relayer. */
async function open(deps: SignerDeps, id: string, feePayer: string): Promise<Opened | Refused> {
  const limits = deps.readLimits();
  if (!limits) return refuse("limits_invalid");
  if (limits.paused) return refuse("paused");
  const [chain, key] = [deps.chains.get(id), deps.treasuryKeys.get(id)];
  if (chain?.namespace !== "solana") return refuse("unknown_asset", `the signer's networks file lacks ${id}`);
  if (!key) return refuse("signer_unavailable", `the treasury's key of ${id} is not open`);
  if (!chain.lanes.includes(feePayer) || feePayer === chain.treasury) return refuse("fee_payer_unknown");
  return findRetirementRefusal(deps.store, chain) ?? (await deps.checkChain(id)) ?? { chain, key };
}

/** Calls the signer's own endpoints. */
async function ask<T extends object>(call: () => Promise<T>): Promise<T | Refused> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ChainError && error.transient)) throw error;
    return refuse("chain_unavailable", error.message);
  }
}

function report<R extends PayoutTransactionResult | MarkerClosingResult>({ metrics, log }: SignerDeps, result: R): R {
  if (result.ok) return result;
  const { reason, detail } = result;
  metrics.signerRefusals.inc({ reason });
  log.warn({ reason, detail }, "transaction is refused");
  return result;
}
