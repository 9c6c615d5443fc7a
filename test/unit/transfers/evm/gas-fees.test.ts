import { describe, expect, test } from "vitest";
import {
  chooseFees,
  chooseGasPrice,
  chooseReplacementFees,
  chooseReplacementPrice,
  deductCharge,
  isPricedOut,
} from "../../../../transfers/evm/gas-fees.ts";

const gwei = 10n ** 9n;
const policy = { maxFeePerGas: 100n * gwei, priorityFeePerGas: gwei };

/** Yields the same pseudo-random numbers in every run; a failure message contains the number. */
function* randoms(count: number): Generator<bigint> {
  let state = 42;
  for (let index = 0; index < count; index += 1) {
    state = (state * 48_271) % 2_147_483_647;
    yield (BigInt(state) * policy.maxFeePerGas) / 2_147_483_647n;
  }
}

describe("the first fees of a transaction", () => {
  test("the first fees of a transaction leave room for the base fee to double", () => {
    expect(chooseFees(10n * gwei, policy)).toEqual({ maxFeePerGas: 21n * gwei, maxPriorityFeePerGas: gwei });
  });

  test("the first fees of a transaction never exceed the ceiling", () => {
    expect(chooseFees(80n * gwei, policy)?.maxFeePerGas).toBe(policy.maxFeePerGas);
    for (const baseFee of randoms(500)) {
      const fees = chooseFees(baseFee, policy);
      if (fees) expect(fees.maxFeePerGas <= policy.maxFeePerGas && fees.maxFeePerGas >= baseFee + gwei).toBe(true);
      else expect(baseFee + gwei > policy.maxFeePerGas).toBe(true);
    }
  });

  test("the first fees of a transaction are offered when the next block costs exactly the ceiling, and withheld one wei above it", () => {
    expect(chooseFees(99n * gwei, policy)).toBeDefined();
    expect(chooseFees(99n * gwei + 1n, policy)).toBeUndefined();
  });

  test("the first fees of a transaction are withheld while the fee source reports a thousand times the usual fee", () => {
    expect(chooseFees(10n * gwei * 1000n, policy)).toBeUndefined();
  });
});

describe("a replacement under the same nonce", () => {
  const before = { maxFeePerGas: 20n * gwei, maxPriorityFeePerGas: gwei };

  test("offers at least 12.5 % more of both fees than the transaction it replaces", () => {
    for (const fee of randoms(500)) {
      const old = { maxFeePerGas: fee + 1n, maxPriorityFeePerGas: fee / 20n };
      const fees = chooseReplacementFees(old, 1n, policy);
      if (!fees) continue;
      expect(fees.maxFeePerGas * 1000n >= old.maxFeePerGas * 1125n, `after ${fee}`).toBe(true);
      expect(fees.maxPriorityFeePerGas * 1000n >= old.maxPriorityFeePerGas * 1125n, `after ${fee}`).toBe(true);
      expect(fees.maxPriorityFeePerGas <= fees.maxFeePerGas).toBe(true);
      expect(fees.maxFeePerGas <= policy.maxFeePerGas).toBe(true);
    }
  });

  test("raises fees of a few wei, which rounding alone would leave unchanged", () => {
    const fees = chooseReplacementFees({ maxFeePerGas: 1n, maxPriorityFeePerGas: 0n }, 0n, {
      maxFeePerGas: 100n,
      priorityFeePerGas: 0n,
    });
    expect(fees?.maxFeePerGas).toBeGreaterThan(1n);
    expect(fees?.maxPriorityFeePerGas).toBeGreaterThan(0n);
  });

  test("covers a doubling of the current base fee where the ceiling allows", () => {
    expect(chooseReplacementFees(before, 30n * gwei, policy)?.maxFeePerGas).toBe(61n * gwei);
  });

  test("offers the tip of the networks file when an operator has raised it by more than 12.5 %", () => {
    const raised = { ...policy, priorityFeePerGas: 25n * gwei };
    expect(chooseReplacementFees(before, gwei, raised)?.maxPriorityFeePerGas).toBe(25n * gwei);
    expect(chooseReplacementFees(before, gwei, policy)?.maxPriorityFeePerGas).toBe((gwei * 1125n) / 1000n + 1n);
    const atCeiling = chooseReplacementFees(before, gwei, { maxFeePerGas: 23n * gwei, priorityFeePerGas: 25n * gwei });
    expect(atCeiling).toEqual({ maxFeePerGas: 23n * gwei, maxPriorityFeePerGas: 23n * gwei });
  });

  test("offers at most the ceiling", () => {
    expect(chooseReplacementFees(before, 5_000n * gwei, policy)?.maxFeePerGas).toBe(policy.maxFeePerGas);
  });

  test("a replacement under the same nonce is not created when the ceiling leaves no room for 12.5 % more: the lane waits", () => {
    const high = { maxFeePerGas: 90n * gwei, maxPriorityFeePerGas: gwei };
    expect(chooseReplacementFees(high, 5_000n * gwei, policy)).toBeUndefined();
  });
});

test("a transaction is below the base fee when it cannot pay it with its tip, on a chain without EIP-1559 with its price", () => {
  const fees = { maxFeePerGas: 20n, maxPriorityFeePerGas: 2n };
  expect([18n, 19n].map((baseFee) => isPricedOut(fees, baseFee, "eip1559"))).toEqual([false, true]);
  const price = { maxFeePerGas: 20n, maxPriorityFeePerGas: 20n };
  expect([1n, 20n, 21n].map((baseFee) => isPricedOut(price, baseFee, "legacy"))).toEqual([false, false, true]);
});

describe("on a chain without EIP-1559", () => {
  test("a transaction offers the node's price and the tip, and nothing above the ceiling", () => {
    expect(chooseGasPrice(10n * gwei, policy)).toEqual({ maxFeePerGas: 11n * gwei, maxPriorityFeePerGas: 11n * gwei });
    expect(chooseGasPrice(99n * gwei, policy)).toBeDefined();
    expect(chooseGasPrice(99n * gwei + 1n, policy)).toBeUndefined();
  });

  test("a replacement offers 12.5 % more, or the node's price if that is higher", () => {
    const before = { maxFeePerGas: 20n * gwei, maxPriorityFeePerGas: 20n * gwei };
    const raised = (20n * gwei * 1125n) / 1000n + 1n;
    expect(chooseReplacementPrice(before, 5n * gwei, policy)).toEqual({
      maxFeePerGas: raised,
      maxPriorityFeePerGas: raised,
    });
    expect(chooseReplacementPrice(before, 40n * gwei, policy)?.maxFeePerGas).toBe(41n * gwei);
    expect(chooseReplacementPrice({ ...before, maxFeePerGas: 90n * gwei }, 1n, policy)).toBeUndefined();
  });
});

test("a rollup's charge lowers the ceiling of the gas by its share of each gas, rounded up", () => {
  expect(deductCharge(policy, { charge: 1_000n * gwei, gas: 100n }).maxFeePerGas).toBe(90n * gwei);
  expect(deductCharge(policy, { charge: 1n, gas: 100n }).maxFeePerGas).toBe(100n * gwei - 1n);
  expect(deductCharge(policy, { charge: 0n, gas: 100n })).toEqual(policy);
  const free = { maxFeePerGas: 100n * gwei, priorityFeePerGas: 0n };
  expect(chooseFees(0n, deductCharge(free, { charge: 10n ** 18n, gas: 100n }))).toBeUndefined();
});
