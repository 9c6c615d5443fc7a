import type { TokenMovement } from "../chains/token-movement.ts";

/** The members of a transfer that its movement must match. */
export type Provable = { token: string; payer: string; receiver: string; amount: bigint; authorization_nonce: string };

/** What a movement moves, from whom to whom. */
type Moved = Pick<Provable, "token" | "payer" | "receiver" | "amount">;

/** Returns true when a log shows exactly this transfer: same token, payer, authorization nonce, receiver and amount. */
export function isProof(log: TokenMovement, transfer: Provable): boolean {
  return log.authorizationNonce === transfer.authorization_nonce && isSameMovement(log, transfer);
}

/** Returns true when two movements have the same token, payer, receiver and amount. */
export function isSameMovement(one: Moved, other: Moved): boolean {
  return (
    one.token === other.token &&
    one.payer === other.payer &&
    one.receiver === other.receiver &&
    one.amount === other.amount
  );
}
