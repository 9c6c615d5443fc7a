import { expect, test } from "vitest";
import { isLaneHeld } from "../../../../transfers/evm/lane-holds.ts";

const policy = { maxFeePerGas: 100n, priorityFeePerGas: 1n };
const idle = { in_flight: 0, lowest_max_fee: null, lowest_priority_fee: null };
const flying = (lowest_max_fee: bigint) => ({ in_flight: 1, lowest_max_fee, lowest_priority_fee: 1n });

test.each([
  ["a lane with nothing to send is not held at any price", idle, { base_fee: 500n, waiting: false }, false],
  ["a lane that can send at the ceiling is not held", idle, { base_fee: 99n, waiting: true }, false],
  ["a lane that could only send above the ceiling is held", idle, { base_fee: 100n, waiting: true }, true],
  [
    "a lane whose transaction needs more than the ceiling is held",
    flying(90n),
    { base_fee: 100n, waiting: false },
    true,
  ],
  ["a lane whose transaction still offers enough is not held", flying(95n), { base_fee: 90n, waiting: false }, false],
  [
    "a stuck lane whose replacement fits under the ceiling is not held",
    flying(50n),
    { base_fee: 60n, waiting: false },
    false,
  ],
  ["a stuck lane whose replacement exceeds the ceiling is held", flying(95n), { base_fee: 97n, waiting: false }, true],
  ["a lane is not held before the first block has been read", idle, { base_fee: null, waiting: true }, false],
])("%s", (_what, lane, chain, held) => {
  expect(isLaneHeld(lane, chain, { policy, feeModel: "eip1559" })).toBe(held);
});

test("a lane whose chain was removed from the networks file is not held", () => {
  expect(isLaneHeld(flying(50n), undefined, { policy, feeModel: "eip1559" })).toBe(false);
});

test("a lane on a chain without EIP-1559 is held when its gas price is below the base fee, not below the base fee and itself", () => {
  const chain = (base_fee: bigint) => ({ base_fee, waiting: false });
  const lane = { ...flying(95n), lowest_priority_fee: 95n };
  expect(isLaneHeld(lane, chain(10n), { policy, feeModel: "legacy" })).toBe(false);
  expect(isLaneHeld(lane, chain(95n), { policy, feeModel: "legacy" })).toBe(false);
  expect(isLaneHeld(lane, chain(96n), { policy, feeModel: "legacy" })).toBe(true);
});
