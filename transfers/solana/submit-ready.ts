import { getSolanaChain } from "../../chains/open-chains.ts";
import { readBudget } from "../../chains/solana/compute-budget.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { parseTransaction, withSignature } from "../../chains/solana/wire-format.ts";
import { holdTransfer, listReady, type SolanaTransferRow } from "../../db/queries/transfers.ts";
import type { Purpose } from "../../db/tables.ts";
import { attemptAll } from "../attempt-all.ts";
import type { SendHandlers } from "../booking-handlers.ts";
import { findReadEpoch } from "../caught-up.ts";
import { type BookDeclined, declineTransfer } from "../decline-transfer.ts";
import { screenByList } from "../list-screening.ts";
import { traceTransfers } from "../trace-transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { broadcastStored } from "./broadcast-transactions.ts";
import { lateBefore, sortLate } from "./late-payments.ts";
import { type Signing, storeSignings } from "./store-transactions.ts";
import { submitPayouts } from "./submit-payouts.ts";

/** Transfers that one call submits at most. */
const MAX_SUBMITTED = 100;
/** Why a transfer is held whose blockhash expired while no worker ran. */
const EXPIRED = "its blockhash expired before it was sent";
/** Why a transfer is held that another transaction may have made while no worker ran. */
const NAMED = "a transaction that is not booked yet names it";

/**
 * Submits the ready transfers of a cluster. The relayer signs a buyer's transaction once: the bytes, the first signature and
 * the last height are stored before the broadcast, and no second transaction is ever signed for the same payment. One whose blockhash
 * has expired is not signed. The treasury's transfers use durable nonces (see submitPayouts), and buyers do not wait for them. Returns
 * `more` when another call can do more work now.
 */
export async function submitReady(
  deps: TransferDeps,
  chainId: string,
  handlers: SendHandlers,
): Promise<"idle" | "more"> {
  const chain = getSolanaChain(deps.chains, chainId);
  const ready = (purposes: readonly Purpose[], acceptedSince = new Date(0)) =>
    listReady(deps.db, { chain: chain.chain, purposes, now: deps.now(), limit: MAX_SUBMITTED, acceptedSince });
  const epoch = await findReadEpoch(deps, chain.chain);
  // Until the chain was read again after lost commits, nothing is signed, and no transfer is ended as never sent.
  if (epoch === undefined) return "idle";
  let isMore = false;
  // When nothing was sent, a durable nonce or a key is missing, and another call could not send anything either.
  const note = (rows: readonly SolanaTransferRow[], sent: number) => {
    isMore ||= rows.length >= MAX_SUBMITTED && sent > 0;
  };
  await attemptAll([
    async () => {
      const oldest = await ready(["payment"]);
      const since = lateBefore(deps);
      // As many as one call takes may wait for an endpoint's answer about them, and must not keep later ones waiting.
      const isBehind = oldest.length === MAX_SUBMITTED && oldest.some(({ created_at: at }) => at < since);
      const recent = isBehind ? await ready(["payment"], since) : [];
      const payments = [...oldest.filter(({ id }) => !recent.some((one) => one.id === id)), ...recent];
      const submit = () => submitPayments(deps, chain, payments, { declined: handlers.declined, epoch });
      note(payments, await traceTransfers(deps, "relay", { chain: chain.chain, transfers: payments }, submit));
    },
    async () => {
      const payouts = await ready(["settlement", "refund", "cold"]);
      note(payouts, await submitPayouts(deps, chain, payouts, handlers.adopted));
    },
  ]);
  return isMore ? "more" : "idle";
}

/**
 * Sends buyers' transactions. Those that were accepted long ago are checked first (`sortLate`), and the others do not wait for them. Holds
 * a transfer whose blockhash has expired, and one that another transaction names. Sends nothing for a payer that fails screening. Returns
 * how many were sent or held for these reasons, which the next call does not find again.
 */
async function submitPayments(
  deps: TransferDeps,
  chain: SolanaChain,
  payments: readonly SolanaTransferRow[],
  { declined, epoch }: { declined: BookDeclined; epoch: string },
): Promise<number> {
  if (payments.length === 0) return 0;
  const payers = payments.map(({ payer }) => payer);
  const refused = screenByList(deps, chain.chain, payers);
  const wanted = payments.filter(({ payer }) => !refused.has(payer));
  const since = lateBefore(deps);
  const late = wanted.filter(({ created_at: at }) => at < since);
  let done = 0;
  const send = async (rows: readonly SolanaTransferRow[]) => {
    done += await signAndSend(deps, chain, rows, epoch);
  };
  const hold = ({ id }: SolanaTransferRow, error: string) => {
    done += 1;
    deps.log.warn({ transfer: id, chain: chain.chain, error }, "buyer's transaction has waited, and is not sent now");
    return holdTransfer(deps.db, { id, error, now: deps.now() });
  };
  await attemptAll([
    () => send(wanted.filter((row) => !late.includes(row))),
    ...payments.filter(({ payer }) => refused.has(payer)).map((row) => () => declineTransfer(deps, row, declined)),
    async () => {
      const { signable, expired, named } = await sortLate(deps, chain, late);
      await attemptAll([
        () => send(signable),
        // The watcher ends them, or their payments are paid by other transfers until then.
        ...expired.map((row) => () => hold(row, EXPIRED)),
        ...named.map((row) => () => hold(row, NAMED)),
      ]);
    },
  ]);
  return done;
}

/** Signs, stores and broadcasts buyers' transactions. Holds a transfer that cannot be signed. Returns how many were stored. */
async function signAndSend(
  deps: TransferDeps,
  chain: SolanaChain,
  rows: readonly SolanaTransferRow[],
  epoch: string,
): Promise<number> {
  const signings: Signing[] = [];
  const failing: { row: SolanaTransferRow; error: string }[] = [];
  const signed = await Promise.all(rows.map(async (row) => ({ row, signing: await sign(deps, chain, row) })));
  for (const { row, signing } of signed) {
    if (typeof signing === "string") failing.push({ row, error: signing });
    else signings.push(signing);
  }
  const stored = await storeSignings(deps, chain, signings, epoch);
  await attemptAll([
    () => broadcastStored(deps, chain, stored),
    ...failing.map(({ row, error }) => () => {
      deps.log.error({ transfer: row.id, chain: chain.chain, error }, "buyer's transaction is held");
      return holdTransfer(deps.db, { id: row.id, error, now: deps.now() });
    }),
  ]);
  return stored.length;
}

/**
 * Signs the buyer's transaction, which was verified before, as its fee payer. Returns the reason as a string when it cannot
 * be signed.
 */
async function sign(deps: TransferDeps, chain: SolanaChain, row: SolanaTransferRow): Promise<Signing | string> {
  const parsed = parseTransaction(row.signature ?? new Uint8Array());
  const keys = deps.solanaKeys.get(chain.chain);
  const signer = "error" in parsed ? undefined : keys?.lanes.get(parsed.feePayer);
  if ("error" in parsed || !signer) return "the transaction's fee payer is not one of our relayers";
  const { last_valid_height: lastValidHeight } = row;
  if (lastValidHeight === null) return "the last block height of the transaction is not known";
  return {
    lane: signer.address,
    bytes: withSignature(parsed, signer.address, await signer.sign(parsed.message)),
    ...readBudget(parsed),
    expires: { lastValidHeight },
    transfers: [row],
  };
}
