import type { StatusPayload } from "../pages/script-data.ts";
import { ApiError } from "./dom.ts";
import { callApi } from "./page-data.ts";
import type { Result } from "./sent-transaction.ts";

/** The submitted transaction is in a block and moved no money. */
export class Reverted extends Error {}

/**
 * Submits a confirm and returns the payment's new status. A confirm is idempotent: a lost response is retried after a
 * second and never pays twice. The server holds the request until the confirm is verified; the request is repeated while
 * the payment waits for this attempt. Throws Reverted, an ApiError that is not transient, or the 30th transient error.
 */
export async function submitConfirm(
  confirm: { optionId: string; results: Result[] },
  { isMine, onOpen }: { isMine: () => boolean; onOpen?: () => void },
): Promise<StatusPayload> {
  for (let failures = 0, open = false; ; ) {
    try {
      const payment = await callApi<StatusPayload & { reverted?: true }>("/confirm", { json: confirm });
      if (payment.reverted) throw new Reverted();
      if (payment.status !== "requires_action" || !isMine()) return payment;
      if (!open) onOpen?.();
      open = true;
    } catch (error) {
      failures += 1;
      if (error instanceof Reverted || !isTransientError(error) || failures === 30) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

/** Returns true for a network error, a rate limit and a server error: the request may succeed when it is repeated. */
export const isTransientError = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.status === 429 || error.status >= 500;
