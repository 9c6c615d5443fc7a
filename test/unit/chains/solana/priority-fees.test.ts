import { expect, test } from "vitest";
import { ChainError } from "../../../../chains/errors.ts";
import type { SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { chooseUnitPrice } from "../../../../chains/solana/priority-fees.ts";
import { solanaNetwork } from "../../../../runtime/networks/solana-network.ts";

const UNITS = 80_000;

/** Returns the priority fee in lamports of a transaction, when endpoints report these prices or throw. */
async function feeOf(
  { min, max = 100_000n }: { min: bigint; max?: bigint },
  report: () => readonly number[],
  units = UNITS,
): Promise<bigint> {
  const ask = async () => report().map((prioritizationFee, slot) => ({ slot, prioritizationFee }));
  const network = { minPriorityFee: min, maxPriorityFee: max };
  const chain = { network, tokens: new Map(), rpc: { ask } } as unknown as SolanaChain;
  return (BigInt(units) * (await chooseUnitPrice(chain, units, 1))) / 1_000_000n;
}

const zeros = () => [0, 0, 0, 0];

test("a transaction offers the least fee where endpoints report no fees, whatever its units are", async () => {
  expect(await feeOf({ min: 2_000n }, zeros)).toBe(2_000n);
  expect(await feeOf({ min: 2_000n }, zeros, 1_000_000)).toBe(2_000n);
  expect(await feeOf({ min: 2_000n }, () => [])).toBe(2_000n);
});

test("a transaction offers the least fee when no endpoint answers", async () => {
  const away = () => {
    throw new ChainError("rpc_unreachable");
  };
  expect(await feeOf({ min: 2_000n }, away)).toBe(2_000n);
});

test("a higher price that endpoints report applies up to the most that a transaction offers", async () => {
  const price = (lamports: number) => () => [(lamports * 1_000_000) / UNITS];
  expect(await feeOf({ min: 2_000n }, price(10_000))).toBe(10_000n);
  expect(await feeOf({ min: 2_000n }, price(1_000_000))).toBe(100_000n);
  expect(await feeOf({ min: 2_000n, max: 1_000n }, zeros)).toBe(1_000n);
});

test("the least fee is 2,000 lamports unless the networks file sets it", () => {
  const { minPriorityFee } = solanaNetwork.shape;
  expect(minPriorityFee.parse(undefined)).toBe(2_000n);
  expect(minPriorityFee.parse("50000")).toBe(50_000n);
});
