import { createHash } from "node:crypto";

/**
 * The client that requests a payment's options: one wallet instance (an app id or a key, with a Client-Id), all users
 * of a key without a Client-Id, or one session of the checkout page. `name` is a hash of the credentials that the
 * requester sends with every call. Knowing the name proves nothing, so it may appear in a URL.
 */
export type Requester = {
  name: string;
  /** True for a single instance or session; false for all users of a wallet's key. */
  isOne: boolean;
};

/** Length of a name in bytes: as many as a UUID, encoded as base64url. */
const NAME_BYTES = 16;
export const requesterName = /^[A-Za-z0-9_-]{22}$/;

/** Returns the requester with these credentials. */
export function nameRequester(
  kind: "app" | "key" | "session",
  proof: readonly (string | undefined)[],
  { isOne }: { isOne: boolean },
): Requester {
  const hash = createHash("sha256").update(JSON.stringify([kind, ...proof]));
  return { name: hash.digest().subarray(0, NAME_BYTES).toString("base64url"), isOne };
}
