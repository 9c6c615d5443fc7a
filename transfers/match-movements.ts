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

/**
 * Returns each nonce that movements may have, once. The movements of a group share one list of candidates, which is read once: a
 * stranger's transaction can make a thousand movements and use hundreds of authorizations.
 */
export function listNonces(seen: readonly TokenMovement[]): string[] {
  const lists = new Set(seen.flatMap(({ candidateNonces }) => (candidateNonces ? [candidateNonces] : [])));
  return [...new Set([...seen.flatMap(({ authorizationNonce }) => authorizationNonce ?? []), ...[...lists].flat()])];
}

/**
 * Decides which movement belongs to each known transfer, where several movements of one transaction are candidates: the one
 * with its receiver and amount. The transaction used the authorization, so no other proof is needed. Changes the nonces of
 * the movements.
 */
export function resolveNonces(seen: readonly TokenMovement[], known: readonly Provable[]): void {
  const open = seen.filter(({ candidateNonces }) => candidateNonces !== undefined);
  const resolved = new Map<TokenMovement, string>();
  for (const transfer of known) {
    const { authorization_nonce: nonce } = transfer;
    const isMatch = (log: TokenMovement) =>
      isSameMovement(log, transfer) && log.candidateNonces?.includes(nonce) === true;
    const match = open.find((log) => !resolved.has(log) && isMatch(log));
    if (match) resolved.set(match, nonce);
  }
  const taken = new Set(resolved.values());
  for (const log of open) {
    const nonce = resolved.get(log);
    if (nonce !== undefined) log.authorizationNonce = nonce;
    else if (log.authorizationNonce !== null && taken.has(log.authorizationNonce)) log.authorizationNonce = null;
  }
}
