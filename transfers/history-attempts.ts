/**
 * After this many attempts to read an entry of the treasury's history, in about four minutes, the entry no longer blocks
 * payouts, nor the deadlines of payments that it does not name. It is still retried, and an alert fires. When no endpoint answers
 * any call, that is no attempt.
 */
export const MAX_READ_ATTEMPTS = 8;
