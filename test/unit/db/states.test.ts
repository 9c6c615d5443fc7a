import { describe, expect, test } from "vitest";
import { isFinalPaymentState, listTransitions, machines } from "../../../db/states.ts";

/**
 * The resting states of each machine. A transaction may still leave its resting state, because a deep reorg may remove its block, and so
 * may an attempt, because other money may pay its payment.
 */
const rests = {
  payment: ["succeeded", "failed", "expired", "cancelled"],
  attempt: ["verified"],
  transfer: ["confirmed", "ended"],
  transaction: ["final", "replaced", "expired"],
  settlement: ["paid", "netted"],
  refund: ["paid", "marked", "withdrawn"],
  destination_change: ["applied", "rejected"],
};

describe.each(Object.entries(machines) as [keyof typeof machines, Record<string, readonly string[]>][])(
  "the states of a %s",
  (machine, states) => {
    test("have transitions only to existing states, and never back to new", () => {
      for (const target of Object.values(states).flat()) {
        expect(Object.keys(states)).toContain(target);
        expect(target).not.toBe("new");
      }
    });

    test("are all reachable, and each one can reach a resting state", () => {
      const reach = (from: string, seen = new Set<string>()): Set<string> => {
        for (const target of states[from] ?? [])
          if (!seen.has(target)) {
            seen.add(target);
            reach(target, seen);
          }
        return seen;
      };
      expect([...reach("new")].sort()).toEqual(
        Object.keys(states)
          .filter((state) => state !== "new")
          .sort(),
      );
      for (const state of Object.keys(states))
        expect(
          rests[machine].some((end) => end === state || reach(state).has(end)),
          state,
        ).toBe(true);
    });

    test("are final exactly where no transition leaves them", () => {
      const ends = Object.keys(states).filter((state) => states[state]?.length === 0);
      const left = { transaction: ["expired"], attempt: [] };
      expect(ends.sort()).toEqual({ ...rests, ...left }[machine].toSorted());
    });
  },
);

test("a payment is final in every state except requires_action and processing", () => {
  expect(
    Object.keys(machines.payment).filter((state) => state !== "new" && isFinalPaymentState(state as never)),
  ).toEqual(rests.payment);
});

test("Postgres allows exactly these transitions", () => {
  const moves = listTransitions().map((move) => `${move.machine} ${move.from_state} ${move.to_state}`);
  expect(new Set(moves).size).toBe(moves.length);
  expect(moves).toContain("payment requires_action processing");
  expect(moves).not.toContain("payment succeeded processing");
  expect(moves.length).toBe(Object.values(machines).flatMap((states) => Object.values(states).flat()).length);
});
