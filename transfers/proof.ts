import type { SeenTransfer } from "../chains/movements.ts";

/** What a movement has to show to be a transfer's own. */
export type Provable = { token: string; payer: string; receiver: string; amount: bigint; authorization_nonce: string };

/** Returns true when a log shows exactly this transfer: same token, payer, authorization nonce, receiver and amount. */
export function isProof(log: SeenTransfer, transfer: Provable): boolean {
  return log.authorizationNonce === transfer.authorization_nonce && isSameMovement(log, transfer);
}

function isSameMovement(log: SeenTransfer, transfer: Provable): boolean {
  return (
    log.token === transfer.token &&
    log.payer === transfer.payer &&
    log.receiver === transfer.receiver &&
    log.amount === transfer.amount
  );
}

/**
 * Decides which movement each known transfer is, where several of one transaction may be it: that with its receiver and
 * amount. Its authorization was used there, so none of them needs another proof. Changes the movements' nonces.
 */
export function settleNonces(seen: readonly SeenTransfer[], known: readonly Provable[]): void {
  const open = seen.filter(({ usedNonces }) => usedNonces !== undefined);
  const settled = new Map<SeenTransfer, string>();
  for (const transfer of known) {
    const { authorization_nonce: nonce } = transfer;
    const isIts = (log: SeenTransfer) => log.usedNonces?.includes(nonce) === true && isSameMovement(log, transfer);
    const its = open.find((log) => !settled.has(log) && isIts(log));
    if (its) settled.set(its, nonce);
  }
  const taken = new Set(settled.values());
  for (const log of open) {
    const nonce = settled.get(log);
    if (nonce !== undefined) log.authorizationNonce = nonce;
    else if (log.authorizationNonce !== null && taken.has(log.authorizationNonce)) log.authorizationNonce = null;
  }
}
