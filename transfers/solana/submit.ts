import { getSolanaChain } from "../../chains/open.ts";
import { readBudget } from "../../chains/solana/budget.ts";
import type { SolanaChain } from "../../chains/solana/open.ts";
import { parseTransaction, withSignature } from "../../chains/solana/transactions.ts";
import type { Purpose } from "../../db/tables.ts";
import { listReady, type TransferRow } from "../../db/transfers.ts";
import type { SendBooks } from "../books.ts";
import { findReadEpoch } from "../caught-up.ts";
import { type DeclinedBook, decline } from "../decline.ts";
import type { TransferDeps } from "../deps.ts";
import { screenAccounts } from "../screening.ts";
import { submitPayouts } from "./payouts.ts";
import { offerStored, type Signing, storeSignings } from "./store.ts";

/** Transfers submitted in one go. */
const TOGETHER = 100;

/**
 * Submits what is ready on a cluster. Buyers' transactions get the relayer's signature, once: bytes, first signature and
 * last height are stored before anything is sent, and nobody ever signs a second one for the same payment. The
 * treasury's transfers go out by durable nonces (see submitPayouts), and no buyer waits behind them. `more`: there is
 * work left that another call can do now.
 */
export async function submitReady(deps: TransferDeps, chainId: string, books: SendBooks): Promise<"idle" | "more"> {
  const chain = getSolanaChain(deps.chains, chainId);
  const ready = (purposes: readonly Purpose[]) =>
    listReady(deps.db, { chain: chain.chain, kind: "spl", purposes, now: deps.now(), limit: TOGETHER });
  const epoch = await findReadEpoch(deps, chain.chain);
  // While it is not known what the rows have forgotten, nothing is signed, and nothing is ended as never sent.
  if (epoch === undefined) return "idle";
  const payments = await ready(["payment"]);
  const served = await keepServed(deps, chain, payments, books.declined);
  const stored = await storeSignings(
    deps,
    chain,
    served.flatMap((row) => sign(deps, chain, row) ?? []),
    epoch,
  );
  await offerStored(deps, chain, stored);
  const payouts = await ready(["settlement", "refund"]);
  const went = await submitPayouts(deps, chain, payouts, books.adopted);
  // What did not go now, for want of a durable nonce or a key, would not go at once either.
  const isFull = (rows: readonly TransferRow[], done: number) => rows.length === TOGETHER && done > 0;
  return isFull(payments, stored.length) || isFull(payouts, went) ? "more" : "idle";
}

async function keepServed(
  deps: TransferDeps,
  chain: SolanaChain,
  rows: readonly TransferRow[],
  declined: DeclinedBook,
): Promise<TransferRow[]> {
  if (rows.length === 0) return [];
  const refused = await screenAccounts(
    deps,
    chain,
    rows.map(({ payer }) => payer),
  );
  for (const row of rows) if (refused.has(row.payer)) await decline(deps, row, declined);
  return rows.filter((row) => !refused.has(row.payer));
}

/** The buyer's transaction with its fee payer's signature; what was verified before is what is signed. */
function sign(deps: TransferDeps, chain: SolanaChain, row: TransferRow): Signing | undefined {
  const parsed = parseTransaction(row.signature ?? new Uint8Array());
  const keys = deps.solanaKeys.get(chain.chain);
  const signer = "fault" in parsed ? undefined : keys?.lanes.get(parsed.feePayer);
  if ("fault" in parsed || !signer) {
    deps.log.error({ transfer: row.id, chain: chain.chain }, "a buyer's transaction names no relayer that we hold");
    return undefined;
  }
  return {
    lane: signer.address,
    bytes: withSignature(parsed, signer.address, signer.sign(parsed.message)),
    ...readBudget(parsed),
    dies: { lastHeight: row.valid_before },
    transferIds: [row.id],
  };
}
