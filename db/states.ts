/**
 * Every state machine as data: machine → state → states it may move to. `new` is where a row comes from that did not
 * exist before. Migrating copies this into the table `transition`, and `event` has a foreign key to it, so that nobody,
 * psql included, can record a move that is not listed here.
 */
export const machines = {
  /** The public states of the specification, part 3. */
  payment: {
    new: ["requires_action"],
    requires_action: ["processing", "expired", "cancelled"],
    processing: ["succeeded", "failed", "expired"],
    succeeded: [],
    failed: [],
    expired: [],
    cancelled: [],
  },
  /** One accepted confirm. A refused one may be offered again: the buyer may have topped up since. */
  attempt: {
    new: ["waiting"],
    waiting: ["verified", "refused"],
    refused: ["waiting"],
    verified: [],
  },
  /**
   * One token movement. `ready`: for a lane to take. `awaited`: somebody else makes it. `carried`: in a lane's stored
   * transaction. `included`: seen in a block. `confirmed`: at the depth of the network's finality. `ended`: can no
   * longer happen.
   */
  transfer: {
    new: ["ready", "awaited"],
    ready: ["carried", "included", "ended"],
    awaited: ["ready", "included", "ended"],
    carried: ["included", "ready", "ended"],
    included: ["confirmed", "carried", "ready", "awaited"],
    confirmed: [],
    ended: [],
  },
  /**
   * Signed bytes of a lane. `signed`: stored, perhaps sent. `offered`: sent, no answer that it was taken. `accepted`:
   * an endpoint took it. `included`: in a block. `final`: in a block that finality says cannot go; should it go all
   * the same, the bytes are offered again. `replaced`: another one with the same nonce is final, or its lane was led back below its nonce. `expired`: what it was
   * built on has died (a blockhash, a durable nonce), and no endpoint has ever seen it.
   */
  transaction: {
    new: ["signed"],
    signed: ["offered", "accepted", "included", "replaced", "expired"],
    offered: ["accepted", "included", "replaced", "expired"],
    accepted: ["offered", "included", "replaced", "expired"],
    included: ["accepted", "final"],
    final: ["accepted"],
    replaced: ["accepted", "included"],
    expired: [],
  },
  /**
   * The payout of what a merchant is owed. `gathering`: more may still be added to it. `netted`: refunds have taken all
   * of it, and nothing is paid out.
   */
  settlement: {
    new: ["due", "gathering"],
    gathering: ["due", "netted"],
    due: ["paying", "netted"],
    paying: ["paid"],
    paid: [],
    netted: [],
  },
  /**
   * Money sent back. `due`: waits for its merchant's balance. `held`: its receiver is not served. `marked`: no money of
   * ours is moved (test mode, and what was marked before refunds moved money). `withdrawn`: taken back before it began.
   */
  refund: {
    new: ["due", "marked"],
    due: ["paying", "held", "withdrawn"],
    held: ["due", "withdrawn"],
    paying: ["paid"],
    paid: [],
    marked: [],
    withdrawn: [],
  },
} as const satisfies Record<string, Record<string, readonly string[]>>;

export type Machine = keyof typeof machines;
export type StateOf<M extends Machine> = Exclude<keyof (typeof machines)[M], "new"> & string;
/** What may follow a state of a machine. */
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

/** True for the four states of a payment that never change again (specification, part 3). */
export function isFinalPaymentState(state: PaymentState): boolean {
  return machines.payment[state].length === 0;
}

/** All moves, flat, as the table `transition` holds them. */
export function listTransitions(): { machine: Machine; from_state: string; to_state: string }[] {
  return Object.entries(machines).flatMap(([machine, states]) =>
    Object.entries(states).flatMap(([from_state, targets]) =>
      (targets as readonly string[]).map((to_state) => ({ machine: machine as Machine, from_state, to_state })),
    ),
  );
}
