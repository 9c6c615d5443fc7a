import { canonicalAsset } from "../../chains/canonical-ids.ts";
import { ChainError } from "../../chains/errors.ts";
import { readAccountsAt } from "../../chains/solana/cluster-state.ts";
import { listNonceAddresses, readNonces } from "../../chains/solana/nonce-accounts.ts";
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
  const read = await ask(() => listEnded(chain, candidates));
  if ("reason" in read) return report(deps, read);
  const markers = inStoreTransaction(deps.store, () => recordClosings(deps, chain, read));
  if (markers.length === 0) return report(deps, refuse("marker_in_use"));
  return report(deps, await signClosingBytes(chain, key, { ...request, markers }));
}

type Candidate = { address: string; lamports: bigint; transactions: readonly SignedTransaction[] };

/** Markers whose payout is final, and a final slot that includes the payouts. */
type Ended = { slot: number; ended: readonly Candidate[] };

/** Returns the markers whose payout is final and has no transaction left that could be included. */
async function listEnded(chain: SolanaChain, candidates: readonly Candidate[]): Promise<Ended> {
  // One call reads all, so that its slot is that of each marker.
  const { slot: madeBy, accounts } = await readAccountsAt(
    chain,
    candidates.map(({ address }) => address),
    "finalized",
  );
  const places = [...new Set(candidates.flatMap(({ transactions }) => transactions.map((one) => one.nonceAccount)))];
  const { slot, nonces } = await readNonces(chain, places, "finalized");
  const values = new Map(places.map((place, index) => [place, nonces[index]]));
  // An endpoint that lags behind the signing may return a value from before it.
  const isDead = (one: SignedTransaction) => slot >= one.slot && values.get(one.nonceAccount) !== one.nonce;
  const ended = candidates.filter(({ transactions }, index) => isMarker(accounts[index]) && transactions.every(isDead));
  return { slot: madeBy, ended };
}

/** Records the closings of as many markers as fit. Leaves out those for which a transaction was signed meanwhile. */
function recordClosings({ store, now }: SignerDeps, { chain }: SolanaChain, { slot, ended }: Ended) {
  const unchanged = ended.filter(
    ({ address: marker, transactions }) => listTransactions(store, { chain, marker }).length === transactions.length,
  );
  const markers = unchanged.slice(0, MAX_MARKERS_PER_CLOSE).map(({ address, lamports }) => ({ address, lamports }));
  for (const { address: marker } of markers) insertClosing(store, { chain, marker, slot }, now());
  return markers;
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
