import type { VersionedTransactionResponse } from "@solana/web3.js";
import { ChainError } from "../../chains/errors.ts";
import { isSame, listTokenMovements } from "../../chains/solana/final-movements.ts";
import type { SolanaChain, SolanaToken } from "../../chains/solana/open-solana-chain.ts";
import { readTransaction, readTransactionFromEach } from "../../chains/solana/transaction-history.ts";
import { isUnexplained } from "../../chains/solana/treasury-movements.ts";
import type { TokenMovement } from "../../chains/token-movement.ts";
import type { HistoryEntry } from "../../db/queries/history-entries.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { type ForgottenTransaction, readForgottenTransaction } from "./forgotten-transactions.ts";
import { REQUIRED_ENDPOINTS } from "./list-agreement.ts";

/** Failed attempts, about half a minute, after which one endpoint is believed that alone shows a transaction. */
const ALONE_ATTEMPTS = 4;

/** The movements of an entry, and its cost where it is a transaction of ours that is missing in the database. */
export type Found = { seen: TokenMovement[]; forgotten: ForgottenTransaction | undefined };

/**
 * Reads the transaction of an entry from one endpoint. If that one shows no movement, or a change of the treasury's balance that no
 * instruction explains, an endpoint may hide or falsify money, so each endpoint is asked: what two show counts, otherwise the
 * movements that the instructions of one explain. An answer without inner instructions is none where these would explain the change.
 * Throws ChainError while endpoints disagree in another way, and for half a
 * minute while only one shows the transaction.
 */
export async function readEntry(
  deps: Pick<TransferDeps, "metrics" | "log">,
  { chain, token }: { chain: SolanaChain; token: SolanaToken },
  { signature, attempts_made: attemptsMade }: HistoryEntry,
): Promise<Found> {
  const read = (transaction: VersionedTransactionResponse): Found => {
    const found = {
      seen: listTokenMovements(chain, { hash: signature, token }, transaction),
      forgotten: readForgottenTransaction(chain, { signature, slot: transaction.slot }, transaction),
    };
    // A node without inner instructions cannot say who moved what, and other ones give the movement another position.
    if (!transaction.meta?.innerInstructions && found.seen.some(({ logIndex }) => isUnexplained(logIndex)))
      throw new ChainError("rpc_answer", { detail: `transaction ${signature} has no inner instructions` });
    return found;
  };
  const first = await readTransaction(chain, signature, read);
  if (chain.network.rpc.length < REQUIRED_ENDPOINTS || isExplained(first)) return first;
  const readings = (await readTransactionFromEach(chain, { signature, commitment: "finalized" }, read)).map(
    ({ by, answer }) => ({ by, ...answer }),
  );
  const isOther = (one: Found) => (other: Found) => !isSame(one.seen, other.seen);
  const agreed = readings.find((one) => readings.length - readings.filter(isOther(one)).length >= REQUIRED_ENDPOINTS);
  const isAlone = readings.length < REQUIRED_ENDPOINTS;
  const alone = isAlone && attemptsMade >= ALONE_ATTEMPTS ? (readings[0] ?? first) : undefined;
  const found = agreed ?? readings.find(isExplained) ?? alone;
  for (const { by } of found ? readings.filter(isOther(found)) : []) {
    deps.metrics.endpointDisagreements.inc({ chain: chain.chain, endpoint: by });
    deps.log.error(
      { chain: chain.chain, endpoint: by, tx: signature },
      "an endpoint shows other movements of the treasury than another one; they are not recorded",
    );
  }
  if (found) return found;
  const detail = isAlone ? "only one endpoint shows a transaction" : "endpoints show different movements";
  throw new ChainError("rpc_answer", { detail: `${detail} ${signature}` });
}

/** Returns true if instructions show everything that has moved, and something has. */
const isExplained = ({ seen }: Found): boolean =>
  seen.length > 0 && !seen.some(({ logIndex }) => isUnexplained(logIndex));
