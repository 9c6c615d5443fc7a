/**
 * One deterministic job id per piece of work: `step-id-try`. Adding the same one twice runs it once; the sweep raises
 * `try`, so that a failed job kept for people to see never blocks its row. BullMQ refuses ids with a colon, so CAIP
 * ids are written with dashes.
 */
export const keys = {
  verify: (attemptId: string, attempt: number) => `verify-${attemptId}-${attempt}`,
  relay: (transferId: string, attempt: number) => `relay-${transferId}-${attempt}`,
  submit: (transferId: string, attempt: number) => `submit-${transferId}-${attempt}`,
  watch: (chain: string, block: number, attempt: number) => `watch-${chain.replaceAll(":", "-")}-${block}-${attempt}`,
  expire: (paymentId: string, attempt: number) => `expire-${paymentId}-${attempt}`,
  settle: (settlementId: string, attempt: number) => `settle-${settlementId}-${attempt}`,
  sweep: (second: number) => `sweep-at-${second}`,
};
