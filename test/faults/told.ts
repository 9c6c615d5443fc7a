/** An answer that somebody was given about a payment. Times in milliseconds. */
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
export type Creation = { key: string; body: string; httpStatus: number; answer: string };

/** A payment that was asked for, the ends that its plan allows, and whether a confirm of it was answered with success. */
export type Asked = {
  paymentId: string;
  mode: "live" | "test";
  kind: string;
  ends: readonly string[];
  confirmed: boolean;
};

/** Everything that callers were told in one run. */
export type History = {
  told: Told[];
  creations: Creation[];
  asked: Asked[];
  /** Answers that are not what the published contract says of them. */
  offContract: string[];
};
