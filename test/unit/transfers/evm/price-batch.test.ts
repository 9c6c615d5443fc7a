import { describe, expect, test } from "vitest";
import { BASE_GAS, sumGas } from "../../../../transfers/evm/multicall-batch.ts";
import { cutBatch, limitPrice } from "../../../../transfers/evm/price-batch.ts";

const gwei = 10n ** 9n;
const coin = 10n ** 18n;
const fees = { maxFeePerGas: 1_500n * gwei, priorityFeePerGas: 30n * gwei, maxTransactionFee: coin };
const network = { fees, feeModel: "eip1559" as const };
const priceOf = (maxFeePerGas: bigint, extraGas = 0n) => ({
  fees: { maxFeePerGas, maxPriorityFeePerGas: 30n * gwei },
  extraGas,
  charge: 0n,
});
const payments = Array.from({ length: 61 }, () => ({ gas: 130_000 }));

describe("a batch", () => {
  test("stays whole while it offers at most half of the most that a transaction may offer", () => {
    const most = coin / 2n / sumGas(payments);
    expect(cutBatch(payments, priceOf(most), network)).toHaveLength(61);
    expect(cutBatch(payments, priceOf(most + 1n), network)).toHaveLength(60);
  });

  test("is cut to what offers at most half of it, whatever the price is", () => {
    for (let fee = 10n; fee <= 1_500n; fee += 10n) {
      const price = priceOf(fee * gwei);
      const cut = cutBatch(payments, price, network);
      expect(cut.length).toBeGreaterThan(0);
      if (cut.length > 1) expect(2n * sumGas(cut) * price.fees.maxFeePerGas <= coin).toBe(true);
      if (cut.length < 61) expect(2n * (sumGas(cut) + 130_000n) * price.fees.maxFeePerGas > coin).toBe(true);
    }
  });

  test("is cut by the gas for its data, too", () => {
    const price = priceOf(100n * gwei);
    const withData = priceOf(100n * gwei, 2_000_000n);
    expect(cutBatch(payments, withData, network).length).toBeLessThan(cutBatch(payments, price, network).length);
  });
});

describe("a single transfer", () => {
  const gas = BASE_GAS + 1_000_000n;

  test("offers all of it and keeps its tip when twice the base fee would exceed it", () => {
    const limited = limitPrice(priceOf(1_030n * gwei), { gas, baseFee: 500n * gwei }, network);
    expect(limited?.fees).toEqual({ maxFeePerGas: coin / gas, maxPriorityFeePerGas: 30n * gwei });
    expect(limitPrice(priceOf(800n * gwei), { gas, baseFee: 385n * gwei }, network)).toEqual(priceOf(800n * gwei));
  });

  test("waits when it could not pay the base fee and the tip within it, or the gas price", () => {
    const most = coin / gas;
    expect(limitPrice(priceOf(1_500n * gwei), { gas, baseFee: most - 30n * gwei }, network)).toBeDefined();
    expect(limitPrice(priceOf(1_500n * gwei), { gas, baseFee: most - 30n * gwei + 1n }, network)).toBeUndefined();
    const legacy = { ...network, feeModel: "legacy" as const };
    expect(limitPrice(priceOf(most), { gas, baseFee: 0n }, legacy)).toBeDefined();
    expect(limitPrice(priceOf(most + 1n), { gas, baseFee: 0n }, legacy)).toBeUndefined();
  });
});
