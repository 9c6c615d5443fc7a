import { createHash } from "node:crypto";

/**
 * Who requests a payment's options: one wallet instance (an app id with its Client-Id, or a key with one), the users of a
 * key without a Client-Id together, or one session of the checkout page. A name is a hash of what the requester proves
 * itself with on every call, so that knowing the name proves nothing: it may stand in an address.
 */
export type Requester = {
  name: string;
  /** One instance or session, and not all the users of a wallet's key. */
  isOne: boolean;
};

/** A name is as long as a UUID is random, in the alphabet of addresses. */
const NAME_BYTES = 16;
export const requesterName = /^[A-Za-z0-9_-]{22}$/;

/** Returns the requester that proves itself with these parts. */
export function nameRequester(
  kind: "app" | "key" | "session",
  proof: readonly (string | undefined)[],
  { isOne }: { isOne: boolean },
): Requester {
  const hash = createHash("sha256").update(JSON.stringify([kind, ...proof]));
  return { name: hash.digest().subarray(0, NAME_BYTES).toString("base64url"), isOne };
}
