import { moveRows } from "../db/moves.ts";
import type { Db } from "../db/tables.ts";
import type { TransferRow } from "../db/transfers.ts";
import type { SendBooks } from "../transfers/books.ts";
import { coalesce } from "../transfers/coalesce.ts";
import type { TransferDeps } from "../transfers/deps.ts";
import { relayReady, relayWallets } from "../transfers/relay.ts";
import { submitReady } from "../transfers/solana/submit.ts";
import { adoptPayout } from "./adopt.ts";
import type { PaymentDeps } from "./deps.ts";

/**
 * Creates the function that relays every ready transfer of a chain. Calls made during a run share the next run. The
 * function returns `more` when work is left for another call.
 */
export function createRelay(deps: TransferDeps & PaymentDeps): (chain: string) => Promise<"idle" | "more"> {
  return coalesce((chain) => relayReady(deps, chain, createSendBooks(deps)));
}

/**
 * Creates the same function for transfers of contract wallets, which run separately so that no other transfer waits.
 */
export function createWalletRelay(deps: TransferDeps & PaymentDeps): (chain: string) => Promise<"idle" | "more"> {
  return coalesce((chain) => relayWallets(deps, chain, createSendBooks(deps)));
}

/** Creates the same function for Solana. */
export function createSubmit(deps: TransferDeps & PaymentDeps): (chain: string) => Promise<"idle" | "more"> {
  return coalesce((chain) => submitReady(deps, chain, createSendBooks(deps)));
}

/** Creates the handlers that book findings made before a send, for payments, settlements and refunds. */
export function createSendBooks(deps: PaymentDeps): SendBooks {
  return { declined: (db, declined) => bookDeclined(deps, db, declined), adopted: adoptPayout(deps) };
}

/** Fails the payments of payers whom screening rejects (specification, part 3: `declined_user`). */
async function bookDeclined(deps: PaymentDeps, db: Db, declined: readonly TransferRow[]): Promise<() => void> {
  const ids = declined.flatMap((transfer) => transfer.payment_id ?? []);
  const set = { failure_code: "declined_user" as const };
  const moved = await moveRows(db, "payment", { ids, from: "processing", to: "failed", at: deps.now(), set });
  return () => {
    deps.metrics.paymentMoves.inc({ mode: "live", from: "processing", to: "failed" }, moved.length);
    void deps.announce(moved);
  };
}

/** A transfer to relay. `isWallet`: its payer is a contract wallet. `again` is the retry number in the job's id. */
export type ReadyTransfer = { chain: string; transferId: string; isWallet?: boolean; again?: number };

/** Returns the queue that relays a transfer. */
export function queueOf({ chain, isWallet }: ReadyTransfer): "relay-permit" | "relay-wallet" | "submit-solana" {
  if (chain.startsWith("solana:")) return "submit-solana";
  return isWallet ? "relay-wallet" : "relay-permit";
}

/** Enqueues one job per chain and queue. The worker that takes it relays every ready transfer there. */
export async function ringRelays(deps: Pick<PaymentDeps, "ring">, transfers: readonly ReadyTransfer[]): Promise<void> {
  const one = new Map(transfers.map((transfer) => [`${queueOf(transfer)} ${transfer.chain}`, transfer]));
  for (const transfer of one.values()) {
    const { chain, transferId, again } = transfer;
    await deps.ring(queueOf(transfer), [{ data: { chain, transferId }, ...(again === undefined ? {} : { again }) }]);
  }
}
