/**
 * After this many attempts to read an entry of the treasury's history, in about eight minutes, the entry no longer blocks
 * payouts. It is still retried, and an alert fires.
 */
export const MAX_READ_ATTEMPTS = 8;
