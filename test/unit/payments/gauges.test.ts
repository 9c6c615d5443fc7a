import { expect, test } from "vitest";
import { isHeld } from "../../../payments/gauges.ts";

const policy = { maxFeePerGas: 100n, priorityFeePerGas: 1n };
const idle = { inFlight: 0, lowestMaxFee: null, lowestPriorityFee: null };
const flying = (lowestMaxFee: bigint) => ({ inFlight: 1, lowestMaxFee, lowestPriorityFee: 1n });

test.each([
  ["nothing to send, whatever it costs", idle, { baseFee: 500n, waiting: false }, false],
  ["something to send at the ceiling", idle, { baseFee: 99n, waiting: true }, false],
  ["something to send above the ceiling", idle, { baseFee: 100n, waiting: true }, true],
  ["something on its way above the ceiling", flying(90n), { baseFee: 100n, waiting: false }, true],
  ["on its way at a price that still does", flying(95n), { baseFee: 90n, waiting: false }, false],
  ["stuck, and a replacement fits under the ceiling", flying(50n), { baseFee: 60n, waiting: false }, false],
  ["stuck, and a replacement does not fit", flying(95n), { baseFee: 97n, waiting: false }, true],
  ["no block read yet", idle, { baseFee: null, waiting: true }, false],
])("%s", (_what, lane, chain, held) => {
  expect(isHeld(lane, chain, policy)).toBe(held);
});

test("a lane whose chain has left the networks file holds nothing", () => {
  expect(isHeld(flying(50n), undefined, policy)).toBe(false);
  expect(isHeld(flying(50n), { baseFee: 500n, waiting: true }, undefined)).toBe(false);
});
