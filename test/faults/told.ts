/** An answer about a payment. All times of this file in milliseconds of performance.now(). */
export type Told = {
  paymentId: string;
  by: "confirm" | "status";
  begunAt: number;
  endedAt: number;
  status: string;
  isFinal: boolean;
  txId: string | null;
};

/** What a creation under an idempotency key was answered; `body` and `answer` as JSON. */
export type Creation = { key: string; body: string; httpStatus: number; answer: string; at: number };

/** A payment that was asked for, the ends that its plan allows, and whether a confirm of it was answered with success. */
export type Asked = {
  paymentId: string;
  mode: "live" | "test";
  kind: string;
  ends: readonly string[];
  confirmed: boolean;
  /** True when the end may take until the chain's clock has passed what the payer signed. */
  outlives: boolean;
  /** When its creation was answered. */
  madeAt: number;
  /** The service has answered that it knows no such payment. */
  forgotten: boolean;
  /** Its wallet has gone: it has heard of an end, or will never hear of one. */
  left: boolean;
};

/**
 * The database stepped back: what was committed between `from` and `to` is lost (a failover to a replica that was behind,
 * a restore). What was answered in that time may turn out to be untrue; everything before and after may not.
 */
export type Lost = { from: number; to: number };

/** True for something that began and ended at these times and overlaps a time whose commits are lost. */
export function isLost(lost: readonly Lost[], begunAt: number, endedAt: number): boolean {
  return lost.some(({ from, to }) => endedAt >= from && begunAt <= to);
}

/** Everything that callers were told in one run. */
export type History = {
  told: Told[];
  creations: Creation[];
  asked: Asked[];
  /** Answers that are not what the published contract says of them. */
  offContract: string[];
  /** Steps back of the database; none in most runs. */
  lost: Lost[];
};
