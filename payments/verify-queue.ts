import type { AttemptRow } from "../db/attempts.ts";

/** Returns the queue that verifies an attempt. */
export function verifyQueueOf({
  verification,
}: Pick<AttemptRow, "verification">): "verify-signature" | "verify-wallet" {
  return verification === "key" ? "verify-signature" : "verify-wallet";
}
