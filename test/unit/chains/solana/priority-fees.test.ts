import { expect, test } from "vitest";
import { ChainError } from "../../../../chains/errors.ts";
import type { SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { chooseRaisedPrice, chooseUnitPrice } from "../../../../chains/solana/priority-fees.ts";
import { solanaNetwork } from "../../../../runtime/networks/solana-network.ts";

const UNITS = 80_000;

type Limits = { min: bigint; max?: bigint };

/** Returns a cluster whose endpoints report these prices or throw. */
function chainOf({ min, max = 100_000n }: Limits, report: () => readonly number[]): SolanaChain {
  const ask = async () => report().map((prioritizationFee, slot) => ({ slot, prioritizationFee }));
  const network = { minPriorityFee: min, maxPriorityFee: max };
  return { network, tokens: new Map(), rpc: { ask } } as unknown as SolanaChain;
}

/** Returns the priority fee in lamports of a transaction, when endpoints report these prices or throw. */
async function feeOf(limits: Limits, report: () => readonly number[], units = UNITS): Promise<bigint> {
  const chain = chainOf(limits, report);
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

/** Returns the priority fees in lamports of a transaction that is signed again until it may not be. */
async function raisedFees(limits: Limits, report: () => readonly number[], from: bigint): Promise<bigint[]> {
  const chain = chainOf(limits, report);
  const fees: bigint[] = [];
  for (let unitPrice: bigint | undefined = (from * 1_000_000n) / BigInt(UNITS); fees.length < 20; ) {
    unitPrice = await chooseRaisedPrice(chain, { units: UNITS, unitPrice }, 1);
    if (unitPrice === undefined) break;
    fees.push((unitPrice * BigInt(UNITS)) / 1_000_000n);
  }
  return fees;
}

test("a fee doubles up to the most that a transaction offers, and no further", async () => {
  const doubled = [4_000n, 8_000n, 16_000n, 32_000n, 64_000n, 100_000n];
  expect(await raisedFees({ min: 2_000n }, zeros, 2_000n)).toEqual(doubled);
  expect(await raisedFees({ min: 2_000n, max: 2_000n }, zeros, 2_000n)).toEqual([]);
  // The operator has lowered the cap since the signing.
  expect(await raisedFees({ min: 0n, max: 1_000n }, zeros, 2_000n)).toEqual([]);
});

test("a fee of zero rises too, and a higher price that endpoints report applies at once", async () => {
  expect((await raisedFees({ min: 0n }, zeros, 0n)).slice(0, 3)).toEqual([1_000n, 2_000n, 4_000n]);
  const price = () => [(30_000 * 1_000_000) / UNITS];
  expect(await raisedFees({ min: 2_000n }, price, 2_000n)).toEqual([30_000n, 60_000n, 100_000n]);
});

test("the least fee is 2,000 lamports unless the networks file sets it", () => {
  const { minPriorityFee } = solanaNetwork.shape;
  expect(minPriorityFee.parse(undefined)).toBe(2_000n);
  expect(minPriorityFee.parse("50000")).toBe(50_000n);
});
