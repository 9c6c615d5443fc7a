import type { Refused } from "./protocol.ts";
import { type RefusalReason, refusals } from "./refusals.ts";

/** Returns a refusal with a detail for the operator, by default the usual message of its reason. */
export function refuse(reason: RefusalReason, detail: string = refusals[reason].message): Refused {
  return { ok: false, reason, detail };
}
