import type { Sender } from "../../chains/chain-driver.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { getChain } from "../../chains/open-chains.ts";
import { moveRows } from "../../db/moves.ts";
import type { TransferRow } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import type { QueueName } from "../../queues/catalog.ts";
import { outsideTraces } from "../../runtime/tracing/spans.ts";
import type { SendHandlers } from "../../transfers/booking-handlers.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import { singleFlight } from "../../transfers/single-flight.ts";
import type { TransferDeps } from "../../transfers/transfer-deps.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { adoptPayout } from "../payouts/adopt-payout.ts";

/** The queues in which the senders' jobs wait. */
const queues = {
  lanes: "relay-transfers",
  "wallet lane": "relay-contract-wallet",
  relayers: "submit-solana",
} as const satisfies Record<Sender, QueueName>;
type RelayQueue = (typeof queues)[Sender];

/**
 * Creates the function by which a sender sends its ready transfers on a chain. Senders run separately, so that transfers of
 * contract wallets delay no others. A run belongs to the trace of none. Runs of lanes overlap, each with a lane of its own, so
 * that one process uses several lanes while endpoints are slow; other calls made during a run share the next run, for which one
 * of them waits. The function returns `more` when work is left for another call.
 */
export function createSend(
  deps: TransferDeps & PaymentDeps,
  sender: Sender,
): (chain: string) => Promise<"idle" | "more"> {
  const run = (chain: string) =>
    outsideTraces(() => getTransferDriver(getChain(deps.chains, chain)).send(deps, sender, createSendHandlers(deps)));
  return sender === "lanes" ? run : singleFlight(run, "idle");
}

/** Creates the handlers that book findings made before a send, for payments, settlements and refunds. */
export function createSendHandlers(deps: PaymentDeps): SendHandlers {
  return { declined: (db, declined) => bookDeclined(deps, db, declined), adopted: adoptPayout(deps) };
}

/** Fails the payments of payers whom screening rejects (specification, part 3: `declined_user`). */
async function bookDeclined(deps: PaymentDeps, db: Db, declined: readonly TransferRow[]): Promise<() => void> {
  const ids = declined.flatMap((transfer) => transfer.payment_id ?? []);
  const set = { failure_code: "declined_user" as const };
  const moved = await moveRows(db, "payment", { ids, from: "processing", to: "failed", at: deps.now(), set });
  return () => {
    deps.metrics.paymentTransitions.inc({ mode: "live", from: "processing", to: "failed" }, moved.length);
    void deps.publishPaymentChanges(moved);
  };
}

/** A transfer to relay. `isWallet`: its payer is a contract wallet. `retry` is the retry number in the job's id. */
export type ReadyTransfer = { chain: string; transferId: string; isWallet?: boolean; retry?: number };

/** Returns the queue that relays a transfer. */
export function relayQueueOf(transfer: Pick<ReadyTransfer, "chain" | "isWallet">): RelayQueue {
  return queues[senderOf(transfer)];
}

const senderOf = (transfer: Pick<ReadyTransfer, "chain" | "isWallet">): Sender =>
  getChainDriver(transfer.chain).senderOf(transfer);

/**
 * Has transfers relayed by the workers that send on their chains now, and enqueues jobs where a sender has no work: a job
 * would find its lanes in use and do the same. Should such a worker die, the sweep enqueues the transfers.
 */
export async function wakeRelays(
  deps: Pick<PaymentDeps, "enqueue" | "db" | "chains">,
  transfers: readonly ReadyTransfer[],
): Promise<void> {
  for (const ofSender of Map.groupBy(transfers, (one) => `${senderOf(one)} ${one.chain}`).values()) {
    const [first] = ofSender;
    if (!first) continue;
    const driver = getTransferDriver(getChain(deps.chains, first.chain));
    if (!(await driver.wakeOwners(deps, senderOf(first)))) await enqueueRelays(deps, ofSender);
  }
}

/** Enqueues one job per chain and queue. The worker that takes it relays every ready transfer there. */
export async function enqueueRelays(
  deps: Pick<PaymentDeps, "enqueue">,
  transfers: readonly ReadyTransfer[],
): Promise<void> {
  const one = new Map(transfers.map((transfer) => [`${relayQueueOf(transfer)} ${transfer.chain}`, transfer]));
  for (const transfer of one.values()) {
    const { chain, transferId, retry } = transfer;
    await deps.enqueue(relayQueueOf(transfer), [
      { data: { chain, transferId }, ...(retry === undefined ? {} : { retry }) },
    ]);
  }
}
