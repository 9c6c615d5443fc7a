import type { TransferDeps } from "../transfers/deps.ts";
import { type Turn, watchChain } from "../transfers/watch.ts";
import { createBooks } from "./book.ts";
import type { PaymentDeps } from "./deps.ts";

/** Makes one turn of a chain's watcher, which books what it finds for payments and settlements. */
export function createWatch(
  deps: PaymentDeps & TransferDeps,
): (args: { chain: string; signal: AbortSignal }) => Promise<Turn> {
  const books = createBooks(deps);
  return (args) => watchChain(deps, { ...args, books });
}
