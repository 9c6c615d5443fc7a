import { expect, test } from "vitest";
import type { EvmNetwork, SolanaNetwork } from "../../../runtime/networks/read-networks.ts";
import { isLiveHead, maxHeadAge } from "../../../transfers/head-age.ts";

const now = new Date("2026-03-01T12:00:00Z");
const after = (seconds: number) => new Date(now.getTime() + seconds * 1_000);
const evm = (more: { blockMs: number; maxHeadAgeMs?: number | null }) =>
  ({ chain: "eip155:1", ...more }) as Partial<EvmNetwork> as EvmNetwork;
const solana = {
  chain: "solana:4uhcVJyU9pJkvQyS88uRDiswHScsKQ2Y",
  slotMs: 400,
} as Partial<SolanaNetwork> as SolanaNetwork;

test("the maximum age of the head is one minute or ten block times, whichever is longer, unless the networks file sets it", () => {
  expect(maxHeadAge(evm({ blockMs: 2_000 }))).toBe(60_000);
  expect(maxHeadAge(evm({ blockMs: 12_000 }))).toBe(120_000);
  expect(maxHeadAge(evm({ blockMs: 12_000, maxHeadAgeMs: 30_000 }))).toBe(30_000);
  expect(maxHeadAge(solana)).toBe(60_000);
  expect(maxHeadAge(evm({ blockMs: 1_000, maxHeadAgeMs: null }))).toBeUndefined();
});

test("a block that is too old, too far in the future or without a time is not the head", () => {
  const base = evm({ blockMs: 2_000 });
  expect(isLiveHead(base, after(-60), now)).toBe(true);
  expect(isLiveHead(base, after(-61), now)).toBe(false);
  expect(isLiveHead(base, after(60), now)).toBe(true);
  expect(isLiveHead(base, after(61), now)).toBe(false);
  expect(isLiveHead(base, undefined, now)).toBe(false);
});

test("on a chain with blocks on demand, the newest block is the head at any age", () => {
  const anvil = evm({ blockMs: 1_000, maxHeadAgeMs: null });
  expect(isLiveHead(anvil, after(-86_400), now)).toBe(true);
  expect(isLiveHead(anvil, undefined, now)).toBe(true);
});
