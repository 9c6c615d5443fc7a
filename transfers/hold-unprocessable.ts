import { holdTransfer, type TransferRow } from "../db/queries/transfers.ts";
import { cleanText } from "../runtime/clean-text.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/**
 * Holds a transfer that cannot be processed, so that the rest of its batch continues and it is not picked first again.
 * Throws database errors.
 */
export async function holdUnprocessable(
  deps: Pick<TransferDeps, "db" | "now" | "log">,
  { id, chain }: Pick<TransferRow, "id" | "chain">,
  error: unknown,
): Promise<void> {
  deps.log.error({ transfer: id, chain, err: error }, "transfer cannot be processed and is held for a retry");
  const message = error instanceof Error ? error.message : "unknown error";
  await holdTransfer(deps.db, { id, error: cleanText(`it cannot be processed: ${message}`, 200), now: deps.now() });
}
