import { coalesce } from "../transfers/coalesce.ts";
import type { TransferDeps } from "../transfers/deps.ts";
import { readHistory } from "../transfers/solana/read-history.ts";
import { type Turn, watchChain } from "../transfers/watch.ts";
import { createBooks } from "./book.ts";
import type { PaymentDeps } from "./deps.ts";

/**
 * Creates the function that runs one pass of a chain's watcher and books what it finds for payments and settlements.
 */
export function createWatch(
  deps: PaymentDeps & TransferDeps,
): (args: { chain: string; signal: AbortSignal }) => Promise<Turn> {
  const books = createBooks(deps);
  return (args) => watchChain(deps, { ...args, books });
}

/**
 * Creates the function that continues to read the treasury's history on a Solana cluster. Calls made during a run share
 * the next run.
 */
export function createHistoryReader(deps: PaymentDeps & TransferDeps): (chain: string) => Promise<"idle" | "more"> {
  const books = createBooks(deps);
  return coalesce((chain) => readHistory(deps, chain, books));
}
