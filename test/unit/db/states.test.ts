import { describe, expect, test } from "vitest";
import { isFinalPaymentState, listTransitions, machines } from "../../../db/states.ts";

/** Where a row comes to rest. A transaction's rest is not its end: a deep reorg may take its block away. */
const rests = {
  payment: ["succeeded", "failed", "expired", "cancelled"],
  attempt: ["verified"],
  transfer: ["confirmed", "ended"],
  transaction: ["final", "replaced", "expired"],
  settlement: ["paid", "netted"],
  refund: ["paid", "marked", "withdrawn"],
};

describe.each(Object.entries(machines) as [keyof typeof machines, Record<string, readonly string[]>][])(
  "the states of a %s",
  (machine, states) => {
    test("lead only to states that there are, and none back to where rows come from", () => {
      for (const target of Object.values(states).flat()) {
        expect(Object.keys(states)).toContain(target);
        expect(target).not.toBe("new");
      }
    });

    test("can all be reached, and from each one a rest can be reached", () => {
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

    test("end where nothing follows, and nowhere else", () => {
      const ends = Object.keys(states).filter((state) => states[state]?.length === 0);
      expect(ends.sort()).toEqual(machine === "transaction" ? ["expired"] : rests[machine].toSorted());
    });
  },
);

test("a payment that waits or is being paid is not final, and every other one is", () => {
  expect(
    Object.keys(machines.payment).filter((state) => state !== "new" && isFinalPaymentState(state as never)),
  ).toEqual(rests.payment);
});

test("the moves that Postgres knows are these and no other", () => {
  const moves = listTransitions().map((move) => `${move.machine} ${move.from_state} ${move.to_state}`);
  expect(new Set(moves).size).toBe(moves.length);
  expect(moves).toContain("payment requires_action processing");
  expect(moves).not.toContain("payment succeeded processing");
  expect(moves.length).toBe(Object.values(machines).flatMap((states) => Object.values(states).flat()).length);
});
