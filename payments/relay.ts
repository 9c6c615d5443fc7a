import { moveRows } from "../db/moves.ts";
import type { Db } from "../db/tables.ts";
import type { TransferRow } from "../db/transfers.ts";
import type { SendBooks } from "../transfers/books.ts";
import { coalesce } from "../transfers/coalesce.ts";
import type { TransferDeps } from "../transfers/deps.ts";
import { relayReady } from "../transfers/relay.ts";
import { submitReady } from "../transfers/solana/submit.ts";
import { adoptPayout } from "./adopt.ts";
import type { PaymentDeps } from "./deps.ts";

/**
 * Makes what carries everything that is ready on a chain; calls made during a run share the next one. `more` says that
 * there is work left for another call.
 */
export function createRelay(deps: TransferDeps & PaymentDeps): (chain: string) => Promise<"idle" | "more"> {
  return coalesce((chain) => relayReady(deps, chain, createSendBooks(deps)));
}

/** The same for Solana. */
export function createSubmit(deps: TransferDeps & PaymentDeps): (chain: string) => Promise<"idle" | "more"> {
  return coalesce((chain) => submitReady(deps, chain, createSendBooks(deps)));
}

/** Returns what the findings before a send mean for payments, settlements and refunds. */
export function createSendBooks(deps: PaymentDeps): SendBooks {
  return { declined: (db, declined) => bookDeclined(deps, db, declined), adopted: adoptPayout(deps) };
}

/** The payments of payers who are not served have failed (specification, part 3: `declined_user`). */
async function bookDeclined(deps: PaymentDeps, db: Db, declined: readonly TransferRow[]): Promise<() => void> {
  const ids = declined.flatMap((transfer) => transfer.payment_id ?? []);
  const set = { failure_code: "declined_user" };
  const moved = await moveRows(db, "payment", { ids, from: "processing", to: "failed", at: deps.now(), set });
  return () => {
    deps.metrics.paymentMoves.inc({ mode: "live", from: "processing", to: "failed" }, moved.length);
    void deps.announce(moved);
  };
}

/** The queue of what is ready on a chain. */
export function queueOf(chain: string): "relay-permit" | "submit-solana" {
  return chain.startsWith("solana:") ? "submit-solana" : "relay-permit";
}

/** Rings for new transfers, once per chain: whoever answers carries everything that is ready there. */
export async function ringRelays(
  deps: Pick<PaymentDeps, "ring">,
  transfers: readonly { chain: string; transferId: string }[],
): Promise<void> {
  const byChain = new Map(transfers.map((transfer) => [transfer.chain, transfer]));
  for (const { chain, transferId } of byChain.values())
    await deps.ring(queueOf(chain), [{ data: { chain, transferId } }]);
}
