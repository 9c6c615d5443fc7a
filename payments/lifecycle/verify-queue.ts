import type { AttemptRow } from "../../db/queries/attempts.ts";

/** Returns the queue that verifies an attempt. */
export function verifyQueueOf({
  verification,
}: Pick<AttemptRow, "verification">): "verify-signature" | "verify-contract-wallet" {
  return verification === "key" ? "verify-signature" : "verify-contract-wallet";
}
