import { expect, test } from "vitest";
import { createLog } from "../../../../runtime/log.ts";
import { bookParts } from "../../../../transfers/solana/book-parts.ts";

test("each part of a slot that fails is logged, the other parts are booked, and the first error is thrown", async () => {
  const lines: string[] = [];
  const log = createLog({ level: "info", role: "test" }, { write: (line) => void lines.push(line) });
  const booked: string[] = [];
  const step = (name: string, failing: readonly number[]) => async (part: readonly number[]) => {
    const number = (part[0] ?? 0) / 100;
    if (failing.includes(number)) throw new Error(`${name} of part ${number} failed`);
    booked.push(`${name} ${number}: ${part.length}`);
  };
  const rows = Array.from({ length: 350 }, (_, index) => index);
  const steps = { record: step("record", [1, 2]), confirm: step("confirm", [3]) };
  await expect(bookParts({ log }, { chain: "solana:test", rows }, steps)).rejects.toThrow("record of part 1 failed");
  expect(booked.toSorted()).toEqual(
    ["confirm 0: 100", "confirm 1: 100", "confirm 2: 100", "record 0: 100", "record 3: 50"].toSorted(),
  );
  const logged = lines.map((line) => (JSON.parse(line) as { err: { message: string } }).err.message);
  expect(logged).toEqual(["record of part 1 failed", "record of part 2 failed", "confirm of part 3 failed"]);
});
