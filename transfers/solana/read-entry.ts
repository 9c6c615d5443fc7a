import { createHash } from "node:crypto";
import type { VersionedTransactionResponse } from "@solana/web3.js";
import { describeMovements, listTokenMovements } from "../../chains/solana/final-movements.ts";
import type { SolanaChain, SolanaToken } from "../../chains/solana/open-solana-chain.ts";
import { readTransaction, readTransactionFromNext } from "../../chains/solana/transaction-history.ts";
import { isUnexplained } from "../../chains/solana/treasury-movements.ts";
import type { TokenMovement } from "../../chains/token-movement.ts";
import { type ForgottenTransaction, readForgottenTransaction } from "./forgotten-transactions.ts";
import { REQUIRED_ENDPOINTS } from "./list-agreement.ts";

/** The movements of an entry, and its cost where it is a transaction of ours that is missing in the database. */
export type Found = { seen: TokenMovement[]; forgotten: ForgottenTransaction | undefined };
/** The same as one endpoint shows it. */
export type Reading = Found & { by: string };

/** The token account whose history is read. */
type Account = { chain: SolanaChain; token: SolanaToken };

/** Reads an entry from one endpoint. Throws ChainError. */
export function readEntry(account: Account, signature: string): Promise<Reading> {
  return readTransaction(account.chain, signature, toReading(account, signature));
}

/**
 * Reads an entry from another endpoint, without taking its calls from the watcher: undefined if none answers, and without an `answer`
 * if it does not have the transaction. Throws ChainError `budget_spent`.
 */
export function readEntryElsewhere(
  account: Account,
  signature: string,
  isAsked: (by: string) => boolean,
): Promise<{ by: string; answer: Reading | undefined } | undefined> {
  const wanted = { signature, commitment: "finalized" } as const;
  return readTransactionFromNext(account.chain, wanted, toReading(account, signature), isAsked);
}

/**
 * Returns true for a reading that another endpoint must confirm: it shows no movement, or a change of the treasury's balance that no
 * instruction explains, so the endpoint may hide or falsify money.
 */
export function needsComparison({ network }: SolanaChain, reading: Found): boolean {
  return network.rpc.length >= REQUIRED_ENDPOINTS && !isExplained(reading);
}

/** Returns true if instructions show everything that has moved, and something has. */
export const isExplained = ({ seen }: Found): boolean =>
  seen.length > 0 && !seen.some(({ logIndex }) => isUnexplained(logIndex));

/** Returns a digest of what a reading shows: two endpoints that show the same have the same one. It is null where nothing is shown. */
export function digestReading({ seen, forgotten }: Found): string | null {
  if (seen.length === 0 && !forgotten) return null;
  const text = `${describeMovements(seen)}\n${forgotten ? "ours" : ""}`;
  return createHash("sha256").update(text).digest("hex");
}

/** Returns the function that reads an answer. It throws ChainError like `listTokenMovements`. */
function toReading({ chain, token }: Account, signature: string) {
  return (transaction: VersionedTransactionResponse, by: string): Reading => {
    const seen = listTokenMovements(chain, { hash: signature, token }, transaction);
    return { by, seen, forgotten: readForgottenTransaction(chain, { signature, slot: transaction.slot }, transaction) };
  };
}
