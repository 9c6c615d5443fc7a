import { type Hex, parseGwei, parseTransaction, serializeTransaction } from "viem";
import { expect, test } from "vitest";
import { checkEvmChain } from "../../../../chains/evm/check-evm-chain.ts";
import { GAS_PRICE_ORACLE } from "../../../../chains/evm/rollup-fees.ts";
import { evmTransfers } from "../../../../transfers/evm/evm-transfers.ts";
import { isLaneHeld } from "../../../../transfers/evm/lane-holds.ts";
import { deductLatestCharge } from "../../../../transfers/evm/rollup-charge.ts";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { plantPredeploy } from "../../../support/rollup-predeploys.ts";
import { testContract } from "../../../support/test-contracts.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

/** Gas limit of a transaction with one transfer of USDC. */
const LIMIT = 190_000n;
const CEILING = parseGwei("10");
const fees = { maxFeePerGas: String(CEILING), priorityFeePerGas: String(parseGwei("1")) };

/** A chain with a base fee of 4 gwei, so that a transaction offers 9 gwei, and one transfer that is ready. */
async function makeReady(feeModel: string, change: object = {}) {
  const chain = await startChain();
  const buyer = await fundBuyer(chain);
  const predeploy = feeModel === "op-stack" ? "GasPriceOracle" : "NodeInterface";
  const set = await plantPredeploy(chain, predeploy);
  await set(feeModel === "arbitrum" ? 1n : 0n, 0n, ...(feeModel === "arbitrum" ? [] : [0n]));
  const fixture = await makeTransfersFixture(chain, { change: { feeModel, fees, blockMs: 1_000, ...change } });
  await setBaseFee(4);
  const { id } = await fixture.sign(buyer);
  /** Sets what the rollup charges, at an unchanged base fee. */
  const charge = async (...args: bigint[]) => {
    await set(...args);
    await setBaseFee(4);
  };
  async function setBaseFee(gwei: number) {
    await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei(String(gwei)) });
    await mine(chain);
    await fixture.watch();
  }
  const relay = async () => {
    await fixture.relay();
    return (await fixture.transactions()).at(-1);
  };
  return { chain, fixture, id, charge, relay, setBaseFee };
}

test("on an OP Stack chain, the L1 data fee and the operator fee count in the fee ceiling", async () => {
  const { chain, charge, relay } = await makeReady("op-stack");
  // 0.9 gwei per gas for the operator, and the data at 16 times 20 gwei.
  const operatorFee = LIMIT * parseGwei("0.9");
  await charge(16n * parseGwei("20") * 1_000_000n, 0n, operatorFee);
  await chain.client.setAutomine(false);
  const row = await relay();
  const { abi } = testContract("Rollups", "GasPriceOracle");
  const signed: Hex = `0x${row?.bytes.toString("hex")}`;
  // The oracle adds 68 bytes for the signature itself.
  const unsigned = serializeTransaction({
    ...parseTransaction(signed),
    r: undefined,
    s: undefined,
    yParity: undefined,
  });
  const oracle = { address: GAS_PRICE_ORACLE, abi } as const;
  const l1Fee = (await chain.client.readContract({ ...oracle, functionName: "getL1Fee", args: [unsigned] })) as bigint;
  const offered = LIMIT * (row?.max_fee_per_gas ?? 0n) + l1Fee + operatorFee;
  expect(l1Fee).toBeGreaterThan(LIMIT * parseGwei("0.5"));
  expect(row?.gas_limit).toBe(LIMIT);
  expect(row?.max_fee_per_gas, "without the charges 9 gwei").toBeLessThan(parseGwei("9"));
  expect(offered).toBeLessThanOrEqual(LIMIT * CEILING);
});

test("on an OP Stack chain, transfers wait while the charges besides the gas exceed the ceiling", async () => {
  const { fixture, id, charge, relay } = await makeReady("op-stack");
  await charge(0n, 0n, LIMIT * parseGwei("5.1"));
  expect(await relay()).toBeUndefined();
  expect(await fixture.statesOf([id])).toEqual(["ready"]);
  const isHeld = async () => {
    await evmTransfers(fixture.evm).readGasBalances(fixture.deps);
    const lane = { in_flight: 0, lowest_max_fee: null, lowest_priority_fee: null };
    return isLaneHeld(
      lane,
      { base_fee: parseGwei("4"), waiting: true },
      { policy: deductLatestCharge(fixture.evm, LIMIT), feeModel: "op-stack" },
    );
  };
  expect(await isHeld(), "the gauge of the alert").toBe(true);
  // Exactly the ceiling: a base fee of 4, a tip of 1, and an operator fee of 5 gwei for each gas.
  await charge(0n, parseGwei("5") / 100n, 0n);
  expect(await isHeld()).toBe(false);
  expect(await relay()).toMatchObject({ max_fee_per_gas: parseGwei("5"), state: "accepted" });
});

test("a replacement on an OP Stack chain stays below the ceiling together with the charges", async () => {
  const { chain, fixture, id, charge, relay, setBaseFee } = await makeReady("op-stack");
  await charge(0n, 0n, LIMIT * parseGwei("4"));
  await chain.client.setAutomine(false);
  expect(await relay()).toMatchObject({ max_fee_per_gas: parseGwei("6") });
  await setBaseFee(7);
  fixture.clock.advance(60_000);
  await fixture.watch();
  expect(await fixture.transactions(), "12.5 % more would exceed the ceiling").toHaveLength(1);
  expect(await fixture.statesOf([id])).toEqual(["assigned"]);
});

test("a lane that can pay for the gas and not for the rollup's charges sends nothing", async () => {
  const { chain, charge, relay } = await makeReady("op-stack");
  await charge(0n, 0n, LIMIT * parseGwei("1"));
  const lane = chain.keys.lanes[0]?.address ?? "0x";
  await chain.client.setBalance({ address: lane, value: LIMIT * parseGwei("10.9") });
  expect(await relay()).toBeUndefined();
  // 9 gwei of gas, and the charge twice, because it may rise before the inclusion.
  await chain.client.setBalance({ address: lane, value: LIMIT * parseGwei("11") });
  expect(await relay()).toMatchObject({ state: "accepted" });
});

test("on an Arbitrum chain, the gas limit covers the data, which counts in the fee ceiling", async () => {
  const { charge, relay } = await makeReady("arbitrum");
  // 292 bytes of call data at 4,000 gwei: 292,000 gas at a base fee of 4 gwei, or 6.15 gwei per gas of the execution.
  await charge(parseGwei("4"), parseGwei("4000"));
  expect(await relay()).toBeUndefined();
  await charge(parseGwei("4"), parseGwei("1000"));
  const charged = 73_000n * parseGwei("4");
  expect(await relay()).toMatchObject({
    gas_limit: LIMIT + 2n * 73_000n,
    max_fee_per_gas: CEILING - (charged + LIMIT - 1n) / LIMIT,
  });
});

test("on a chain without EIP-1559, transactions have a gas price, and so do their replacements", async () => {
  const chain = await startChain();
  const change = { feeModel: "legacy", fees: { ...fees, maxFeePerGas: String(parseGwei("50")) }, blockMs: 1_000 };
  const fixture = await makeTransfersFixture(chain, { change });
  const one = await fixture.sign(await fundBuyer(chain));
  await chain.client.setAutomine(false);
  const proposed = await chain.client.getGasPrice();
  await fixture.relay();
  fixture.clock.advance(60_000);
  await fixture.watch();
  await mine(chain);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  const rows = await fixture.transactions();
  const prices = rows.map(({ bytes }) => parseTransaction(`0x${bytes.toString("hex")}`));
  expect(prices.map(({ type }) => type)).toEqual(["legacy", "legacy"]);
  expect(prices[0]?.gasPrice).toBe(proposed + parseGwei("1"));
  expect((prices[1]?.gasPrice ?? 0n) * 1_000n >= (prices[0]?.gasPrice ?? 0n) * 1_125n).toBe(true);
  expect(rows.map(({ max_fee_per_gas: most }) => most)).toEqual(prices.map(({ gasPrice }) => gasPrice));
});

test("on a chain without EIP-1559, a transaction that waits for a block is not replaced while the base fee does not rise", async () => {
  const chain = await startChain();
  const change = { feeModel: "legacy", blockMs: 1_000 };
  const fixture = await makeTransfersFixture(chain, { change });
  fixture.clock.stop();
  const one = await fixture.sign(await fundBuyer(chain));
  await chain.client.setAutomine(false);
  await fixture.relay();
  const [first] = await fixture.transactions();
  for (let block = 0; block < 4; block += 1) {
    // The block's producer leaves the transaction out.
    await chain.client.dropTransaction({ hash: first?.hash as Hex });
    await mine(chain);
    fixture.clock.advance(3_000);
    // The transaction is broadcast again.
    await fixture.watch();
  }
  expect((await fixture.transactions()).map(({ hash, state }) => [hash, state])).toEqual([[first?.hash, "accepted"]]);
  await mine(chain);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
});

test("a process does not start with a fee model that is not the chain's", async () => {
  const chain = await startChain();
  const withModel = async (feeModel: string) => (await makeTransfersFixture(chain, { change: { feeModel } })).evm;
  const plain = await withModel("eip1559");
  await checkEvmChain(plain);
  const [rollup, arbitrum] = [await withModel("op-stack"), await withModel("arbitrum")];
  await expect(checkEvmChain(rollup)).rejects.toThrow("has no GasPriceOracle");
  await expect(checkEvmChain(arbitrum)).rejects.toThrow("has no NodeInterface");
  await plantPredeploy(chain, "GasPriceOracle");
  await checkEvmChain(rollup);
  await expect(checkEvmChain(plain)).rejects.toThrow("set feeModel to op-stack");
});
