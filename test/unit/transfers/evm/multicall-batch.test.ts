import { decodeFunctionData, type Hex } from "viem";
import { describe, expect, test } from "vitest";
import { multicallAbi } from "../../../../chains/evm/abi.ts";
import { buildPayload, pickBatch } from "../../../../transfers/evm/multicall-batch.ts";

const multicall: Hex = `0x${"ca".repeat(20)}`;
const target: Hex = `0x${"70".repeat(20)}`;

const item = (id: number, gas: number, alone = false) => ({ id, gas, alone });
const idsOf = (batch: { id: number }[]) => batch.map(({ id }) => id);

describe("the selection of transfers for one transaction", () => {
  test("the selection of transfers for one transaction is empty when no transfer is ready", () => {
    expect(pickBatch([], 1_000_000)).toEqual([]);
  });

  test("the selection of transfers for one transaction takes the oldest transfers first, as many as the gas limit allows, and never skips to a smaller one", () => {
    const ready = [item(1, 100_000), item(2, 100_000), item(3, 200_000), item(4, 10_000)];
    expect(idsOf(pickBatch(ready, 300_000))).toEqual([1, 2]);
    expect(idsOf(pickBatch(ready, 4_000_000))).toEqual([1, 2, 3, 4]);
  });

  test("the selection of transfers for one transaction takes at least one transfer, even when it exceeds the gas limit alone", () => {
    expect(idsOf(pickBatch([item(1, 900_000), item(2, 50_000)], 200_000))).toEqual([1]);
  });

  test("the selection of transfers for one transaction takes only the oldest transfer when that transfer must be sent alone", () => {
    expect(idsOf(pickBatch([item(1, 100_000, true), item(2, 100_000)], 4_000_000))).toEqual([1]);
  });

  test("skips a younger transfer that must be sent alone and takes those after it", () => {
    expect(idsOf(pickBatch([item(1, 100_000), item(2, 100_000, true), item(3, 100_000)], 4_000_000))).toEqual([1, 3]);
  });

  test("the selection of transfers for one transaction never exceeds the gas limit with more than one transfer", () => {
    for (let bound = 200_000; bound < 2_000_000; bound += 77_777) {
      const ready = Array.from({ length: 40 }, (_, index) => item(index, 50_000 + ((index * 7_919) % 100_000)));
      const calls = pickBatch(ready, bound).map(({ gas }) => ({ calls: [{ target, data: "0x" as Hex }], gas }));
      if (calls.length > 1) expect(Number(buildPayload(multicall, calls).gas)).toBeLessThanOrEqual(bound);
    }
  });
});

describe("the transaction", () => {
  const calls = [1, 2, 3].map((n) => ({ calls: [{ target, data: `0x0${n}` as Hex }], gas: 100_000 }));

  test("the transaction of one call is sent to its target unchanged", () => {
    expect(buildPayload(multicall, calls.slice(0, 1))).toMatchObject({ to: target, data: "0x01" });
  });

  test("the transaction of several calls is sent through Multicall3 in order, and each call may fail independently", () => {
    const { to, data, gas } = buildPayload(multicall, calls);
    expect(to).toBe(multicall);
    expect(gas).toBeGreaterThan(300_000n);
    const { args } = decodeFunctionData({ abi: multicallAbi, data });
    const [requireSuccess, made] = args;
    expect(requireSuccess).toBe(false);
    expect(made.map(({ callData }) => callData)).toEqual(["0x01", "0x02", "0x03"]);
  });
});
