/** A response with a payment's status. All times in this file are milliseconds of performance.now(). */
export type StatusReport = {
  paymentId: string;
  by: "confirm" | "status";
  begunAt: number;
  endedAt: number;
  status: string;
  isFinal: boolean;
  txId: string | null;
};

/** The response to a creation under an idempotency key; `body` and `answer` are JSON. */
type CreationReport = { key: string; body: string; httpStatus: number; answer: string; at: number };

/** A created payment, the ends that its plan allows, and whether one of its confirms succeeded. */
export type CreatedPayment = {
  paymentId: string;
  mode: "live" | "test";
  kind: string;
  ends: readonly string[];
  confirmed: boolean;
  /** Whether the payment may end only after the payer's authorization has expired on the chain. */
  endsAfterExpiry: boolean;
  /** When the response to its creation arrived. */
  createdAt: number;
  /** Whether the service has answered 404 for it. */
  forgotten: boolean;
  /** Whether its wallet has stopped, because it knows the end or cannot learn it. */
  left: boolean;
};

/**
 * A period of lost commits (a failover to a lagging replica, a restore): the database lost what it committed between
 * `from` and `to`. Only responses of that period may contradict the final rows.
 */
export type LostCommits = { from: number; to: number };

/** Returns whether an interval overlaps a period of lost commits. */
export function isDuringLostCommits(lost: readonly LostCommits[], begunAt: number, endedAt: number): boolean {
  return lost.some(({ from, to }) => endedAt >= from && begunAt <= to);
}

/** The responses that callers received in one run. */
export type History = {
  statuses: StatusReport[];
  creations: CreationReport[];
  payments: CreatedPayment[];
  /** Responses that violate the published contract. */
  contractViolations: string[];
  /** Periods of lost commits; none in most runs. */
  lost: LostCommits[];
};
