import { memberNames } from "../runtime/member-names.ts";

/**
 * Every state machine as data: machine → state → states it may move to. `new` is the state before a row exists. `migrate`
 * copies the moves into the table `transition`, which the trigger `event_known_moves` reads: no client, not even psql, can
 * record a move that is not listed here.
 */
export const machines = {
  /** The public states of a payment (specification, part 3). */
  payment: {
    new: ["requires_action"],
    requires_action: ["processing", "expired", "cancelled"],
    processing: ["succeeded", "failed", "expired"],
    succeeded: [],
    failed: [],
    expired: [],
    cancelled: [],
  },
  /**
   * One accepted confirm. A refused one may be submitted again: the buyer may have topped up since. A verified one is refused when other
   * money pays the payment before anything was sent for it.
   */
  attempt: {
    new: ["waiting"],
    waiting: ["verified", "refused"],
    refused: ["waiting"],
    verified: ["refused"],
  },
  /**
   * One token movement. `ready`: a lane may take it. `awaited`: the payer or a relayer submits it, not a lane. `assigned`:
   * assigned to a lane's stored transaction. `included`: observed in a block. `confirmed`: final on its network. `ended`:
   * it can no longer happen.
   */
  transfer: {
    new: ["ready", "awaited"],
    ready: ["assigned", "included", "ended"],
    awaited: ["ready", "included", "ended"],
    assigned: ["included", "ready", "ended"],
    included: ["confirmed", "assigned", "ready", "awaited"],
    confirmed: [],
    ended: [],
  },
  /**
   * A lane's signed transaction. `signed`: stored, and perhaps sent. `broadcast`: broadcast, but no endpoint has confirmed
   * receipt. `accepted`: an endpoint has accepted it. `included`: in a block. `final`: in a final block; if a reorg removes
   * even that block, the same bytes are broadcast again. `replaced`: another transaction with the same nonce is final, or
   * the lane's next nonce was lowered to this one or below. `expired`: its blockhash or durable nonce is no longer valid,
   * and no endpoint has it in a slot.
   */
  transaction: {
    new: ["signed"],
    signed: ["broadcast", "accepted", "included", "replaced", "expired"],
    broadcast: ["accepted", "included", "replaced", "expired"],
    accepted: ["broadcast", "included", "replaced", "expired"],
    included: ["accepted", "final"],
    final: ["accepted"],
    replaced: ["accepted", "included"],
    expired: [],
  },
  /**
   * The payout of what a merchant is owed. `accumulating`: payments may still be added. `netted`: refunds have reduced it to
   * zero, and nothing is paid out.
   */
  settlement: {
    new: ["due", "accumulating"],
    accumulating: ["due", "netted"],
    due: ["paying", "netted"],
    paying: ["paid"],
    paid: [],
    netted: [],
  },
  /**
   * A refund. `due`: waits for the merchant's balance. `held`: screening refuses its receiver. `marked`: recorded without
   * moving money (test mode). `withdrawn`: cancelled before it was paid.
   */
  refund: {
    new: ["due", "marked"],
    due: ["paying", "held", "withdrawn"],
    held: ["withdrawn"],
    paying: ["paid"],
    paid: [],
    marked: [],
    withdrawn: [],
  },
  /**
   * A request to change where a merchant is paid. `requested`: waits for its time or a decision. `approved`: approved
   * before its time. `applied`: `settlement_destination` has it. `rejected`: rejected, withdrawn or replaced.
   */
  destination_change: {
    new: ["requested"],
    requested: ["approved", "applied", "rejected"],
    approved: ["applied"],
    applied: [],
    rejected: [],
  },
} as const satisfies Record<string, Record<string, readonly string[]>>;

export type Machine = keyof typeof machines;
export type StateOf<M extends Machine> = Exclude<keyof (typeof machines)[M], "new"> & string;
/** The states that may follow a state of a machine. */
export type NextOf<
  M extends Machine,
  S extends keyof (typeof machines)[M],
> = (typeof machines)[M][S] extends readonly (infer T)[] ? T & string : never;

export type PaymentState = StateOf<"payment">;
export type AttemptState = StateOf<"attempt">;
export type TransferState = StateOf<"transfer">;
export type TransactionState = StateOf<"transaction">;
export type SettlementState = StateOf<"settlement">;
export type RefundState = StateOf<"refund">;
export type DestinationChangeState = StateOf<"destination_change">;

/** Returns true for the four final states of a payment (specification, part 3). */
export function isFinalPaymentState(state: PaymentState): boolean {
  return machines.payment[state].length === 0;
}

/** The states of a payment, and those of them that it never leaves. */
export const paymentStates = memberNames(machines.payment).filter((state) => state !== "new");
export const openPaymentStates = paymentStates.filter((state) => !isFinalPaymentState(state));

/** Returns all moves as rows of the table `transition`. */
export function listTransitions(): { machine: Machine; from_state: string; to_state: string }[] {
  const all: Record<Machine, Record<string, readonly string[]>> = machines;
  return memberNames(all).flatMap((machine) =>
    Object.entries(all[machine]).flatMap(([from_state, targets]) =>
      targets.map((to_state) => ({ machine, from_state, to_state })),
    ),
  );
}
