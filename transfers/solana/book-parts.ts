import type { TransferDeps } from "../transfer-deps.ts";

/** Rows that are booked in one database transaction. */
const PART = 100;

/**
 * Records rows in parts, and confirms each part while the next one is recorded: the buyers of the first part do not wait for the
 * others. A part that fails does not stop the others. Logs each failure, and throws the first one at the end.
 */
export async function bookParts<R>(
  { log }: Pick<TransferDeps, "log">,
  { chain, rows }: { chain: string; rows: readonly R[] },
  steps: Record<"record" | "confirm", (part: readonly R[]) => Promise<void>>,
): Promise<void> {
  const failures: unknown[] = [];
  const attempt = (step: "record" | "confirm", part: readonly R[]) =>
    steps[step](part).catch((err: unknown) => {
      log.warn({ chain, step, rows: part.length, err }, "some transactions of a pass are not booked yet");
      failures.push(err);
    });
  let confirmed = Promise.resolve();
  for (let from = 0; from < rows.length; from += PART) {
    const part = rows.slice(from, from + PART);
    await attempt("record", part);
    confirmed = confirmed.then(() => attempt("confirm", part));
  }
  await confirmed;
  if (failures.length > 0) throw failures[0];
}
