import type { ComputeBudget } from "../../chains/solana/build-payment.ts";
import { countFitting, countUnits, type Payout } from "../../chains/solana/build-payouts.ts";
import { chooseLane } from "../../chains/solana/choose-lane.ts";
import { limitUnits } from "../../chains/solana/compute-budget.ts";
import { listNonceAddresses, readNonces, readRent } from "../../chains/solana/nonce-accounts.ts";
import { getSolanaToken, type SolanaChain, type SolanaToken } from "../../chains/solana/open-solana-chain.ts";
import { listPaidNonces } from "../../chains/solana/payout-markers.ts";
import { chooseUnitPrice } from "../../chains/solana/priority-fees.ts";
import { simulate } from "../../chains/solana/simulate-wire-bytes.ts";
import {
  buildPayoutTransaction,
  type PayoutTransaction,
  toPayoutArgs,
} from "../../chains/solana/treasury-transactions.ts";
import { MAX_COMPUTE_UNITS } from "../../chains/solana/wallet-instructions.ts";
import { keepFreeNonceAccounts } from "../../db/queries/solana-transactions.ts";
import type { TransferRow } from "../../db/queries/transfers.ts";
import { type BookAdopted, keepUnpaidPayouts } from "../adopt-payouts.ts";
import { findTreasuryEpoch } from "../caught-up.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { broadcastStored } from "./broadcast-transactions.ts";
import { holdPayout, prepareReceivers, type ReadyPayout } from "./prepare-receivers.ts";
import { signPayout } from "./sign-payout.ts";
import { type Signing, storeSignings } from "./store-transactions.ts";

/** A durable nonce account, its value, and the slot of the value. */
type NonceAt = { address: string; nonce: string; slot: number };

/**
 * Sends the treasury's transfers, as many in a transaction as fit. Each transaction uses a durable nonce of its own, so it is
 * included at most once, at any time. Each payout creates a marker, so the cluster rejects a second payout with the same
 * memo. A payout that the treasury's history or a marker shows on the chain is not sent. A payout that would fail is held.
 * Returns the number of payouts that were sent.
 */
export async function submitPayouts(
  deps: TransferDeps,
  chain: SolanaChain,
  rows: readonly TransferRow[],
  adopted: BookAdopted,
): Promise<number> {
  if (rows.length === 0) return 0;
  const epoch = await findTreasuryEpoch(deps, chain.chain);
  if (epoch === undefined) return 0;
  // A restored database may have lost a payout that was made. The treasury's history and the markers show it.
  const unmade = await holdMarked(deps, chain, await keepUnpaidPayouts(deps, rows, adopted));
  if (unmade.length === 0) return 0;
  const ready = await prepareReceivers(deps, chain, unmade);
  const shared = { epoch, markerRent: await readRent(chain) };
  let sent = 0;
  const nonces = await listFreeNonces(deps, chain);
  for (const [asset, group] of Map.groupBy(ready, ({ row }) => row.asset)) {
    const to = { ...shared, token: getSolanaToken(chain, asset) };
    // A payout that failed in a batch goes alone.
    for (const one of group.filter(({ row }) => row.alone))
      sent += await submitBatch(deps, chain, { ...to, batch: [one], nonces });
    let rest = group.filter(({ row }) => !row.alone);
    while (rest.length > 0 && nonces.length > 0) {
      const batch = takeBatch(chain, { ...to, ready: rest, nonces });
      sent += await submitBatch(deps, chain, { ...to, batch, nonces });
      rest = rest.slice(batch.length);
    }
  }
  return sent;
}

/**
 * Holds payouts whose marker exists: a transaction that is missing in the database has made them, and the watcher will find
 * it in the treasury's history. Returns the other payouts.
 */
async function holdMarked(
  deps: TransferDeps,
  chain: SolanaChain,
  rows: readonly TransferRow[],
): Promise<TransferRow[]> {
  const nonces = rows.map((row) => row.authorization_nonce);
  const marked = await listPaidNonces(chain, nonces);
  for (const row of rows)
    if (marked.has(row.authorization_nonce))
      await holdPayout(
        deps,
        row,
        "the chain has its marker: it was already made, and its transaction is searched in the history",
      );
  return rows.filter((row) => !marked.has(row.authorization_nonce));
}

/** Returns the durable nonce accounts that no transaction in flight uses, with their values. */
async function listFreeNonces(deps: TransferDeps, chain: SolanaChain): Promise<NonceAt[]> {
  const places = (await listNonceAddresses(chain, deps.deployment)).map(({ address }) => address);
  const free = await keepFreeNonceAccounts(deps.db, { chain: chain.chain, accounts: places });
  // A transaction whose nonce value disappears with its slot can never be included, and `endExpiredTransactions` ends it.
  const { slot, nonces } = await readNonces(chain, free, "confirmed");
  return free.flatMap((address, index) => {
    const nonce = nonces[index];
    return nonce === undefined ? [] : [{ address, nonce, slot }];
  });
}

/** What the payouts of one run share. */
type Shared = { token: SolanaToken; markerRent: bigint };

/** Returns as many of the first payouts as fit into one transaction. */
function takeBatch(
  chain: SolanaChain,
  { ready, nonces, ...shared }: Shared & { ready: readonly ReadyPayout[]; nonces: readonly NonceAt[] },
): readonly ReadyPayout[] {
  const at = nonces[0] ?? { address: chain.treasury, nonce: chain.treasury, slot: 0 };
  const budget = { units: Number(MAX_COMPUTE_UNITS), unitPrice: 0n };
  const args = toPayoutArgs(chain, describeTransaction({ ...shared, lane: chain.lanes[0] ?? "", at, budget }));
  return ready.slice(0, Math.max(1, countFitting(ready.map(toPayout), args)));
}

/** Returns the parts of a transaction other than the payouts. Only the treasury can use its nonces. */
function describeTransaction({
  token,
  markerRent,
  lane,
  at,
  budget,
}: Shared & { lane: string; at: NonceAt; budget: ComputeBudget }): Omit<PayoutTransaction, "payouts"> {
  return { asset: token.asset, feePayer: lane, nonceAccount: at.address, nonce: at.nonce, markerRent, budget };
}

function toPayout({ row, makeAccount }: ReadyPayout): Payout {
  return { destination: row.receiver, amount: row.amount, memo: row.authorization_nonce, makeAccount };
}

type Batch = Shared & { epoch: string; batch: readonly ReadyPayout[]; nonces: NonceAt[] };

/**
 * Sends one transaction, or splits it when its simulation fails or the signer refuses it. A draft without signatures is
 * simulated, which shows how many compute units the transaction needs. Returns the number of payouts that were sent. Without
 * a free nonce, the payouts wait: the watcher enqueues them again when transactions were included.
 */
async function submitBatch(deps: TransferDeps, chain: SolanaChain, args: Batch): Promise<number> {
  const { epoch, batch, nonces } = args;
  const [at] = nonces;
  if (!at) return 0;
  const most = countUnits(batch.map(toPayout), args.token.program);
  const draft = await buildBatch(deps, chain, { ...args, at, units: most });
  const outcome = await simulate(chain, buildPayoutTransaction(chain, draft));
  const signed = outcome.ok
    ? await signBatch(deps, chain, { ...args, at, units: limitUnits(outcome.units, most) })
    : outcome.reason;
  if (typeof signed !== "string") {
    nonces.shift();
    const stored = await storeSignings(deps, chain, [signed], epoch);
    await broadcastStored(deps, chain, stored);
    return stored.length * batch.length;
  }
  const [only, ...others] = batch;
  let sent = 0;
  // One of several would fail. Each is tried alone, so that the others do not wait for it.
  if (others.length > 0) for (const one of batch) sent += await submitBatch(deps, chain, { ...args, batch: [one] });
  else if (only) await holdPayout(deps, only.row, signed);
  return sent;
}

type Draft = Shared & { batch: readonly ReadyPayout[]; at: NonceAt; units: number };

async function buildBatch(
  deps: TransferDeps,
  chain: SolanaChain,
  { batch, at, units, ...shared }: Draft,
): Promise<PayoutTransaction> {
  const now = deps.now().getTime();
  const lane = await chooseLane(chain, { key: batch[0]?.row.authorization_nonce ?? "0x00000000", now, isLive: true });
  const unitPrice = await chooseUnitPrice(chain, units, now);
  const budget = { units, unitPrice };
  return { ...describeTransaction({ ...shared, lane, at, budget }), payouts: batch.map(toPayout) };
}

/** Signs a transaction of payouts. Returns why the signer refuses it. */
async function signBatch(deps: TransferDeps, chain: SolanaChain, args: Draft): Promise<Signing | string> {
  const { batch, at } = args;
  const transaction = await buildBatch(deps, chain, args);
  const { feePayer: lane, budget } = transaction;
  const bytes = await signPayout(deps, chain, transaction);
  if (typeof bytes === "string") return bytes;
  const expires = { nonceAccount: at.address, nonce: at.nonce, slot: at.slot };
  return { lane, bytes, ...budget, expires, transfers: batch.map(({ row }) => row) };
}
