import { expect, test } from "vitest";
import { openLedger } from "../../../local/solana/validator-state.ts";

test("what lands before the first slot has passed is processed and not final", () => {
  const { slots, advance } = openLedger({ finalityDepth: 2, now: () => 1_800_000_000_000 });
  const first = slots.tip();
  expect(slots.commitmentOf(first)).toBe("processed");
  advance(1);
  expect(slots.commitmentOf(first)).toBe("confirmed");
  advance(1);
  expect(slots.commitmentOf(first)).toBe("finalized");
});
