import { base58 } from "@scure/base";
import { expect, test } from "vitest";
import { getSolanaChain } from "../../../../chains/open-chains.ts";
import { type Earliest, listNeverSeen } from "../../../../chains/solana/never-seen.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { startSolanaProxy } from "../../../support/solana-test-endpoint.ts";
import { startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });
const endpoints = [await startSolanaProxy(solana), await startSolanaProxy(solana), await startSolanaProxy(solana)];
const { deps } = await makeSolanaMerchantFixture(solana, { rpcUrls: endpoints.map(({ fault }) => fault.url) });
const chain = getSolanaChain(deps.chains, solana.id);
const hash = base58.encode(new Uint8Array(64).fill(7));
await solana.knobs.jump(100);
const first = await solana.client.connection.getSlot("finalized");
const HEIGHT = 5_000;

/** Makes endpoints begin their history at slot `first` and height 5,000, and at a time (Unix seconds). */
function keepFromFirst(count: number, blockTime?: number | null): void {
  for (const [index, { alter }] of endpoints.entries())
    alter((method, _params, result) => {
      if (index >= count) return result;
      if (method === "getFirstAvailableBlock") return first;
      if (method !== "getBlock") return result;
      return { ...(result as object), blockHeight: HEIGHT, ...(blockTime === undefined ? {} : { blockTime }) };
    });
}

const isNever = async (earliest: Earliest) => {
  const { never, unproven } = await listNeverSeen(chain, [{ hash, earliest }], { since: 0 });
  expect([...never, ...unproven]).toEqual([hash]);
  return never.has(hash);
};

test("endpoints prove that they have never seen a transaction only if their history goes back to its first possible slot", async () => {
  keepFromFirst(3);
  expect(await isNever({ slot: first })).toBe(true);
  expect(await isNever({ slot: first - 1 })).toBe(false);
  expect(await isNever({ height: HEIGHT })).toBe(true);
  expect(await isNever({ height: HEIGHT - 1 })).toBe(false);
  // Two endpoints that go back prove it, and one does not.
  keepFromFirst(1);
  expect(await isNever({ slot: first - 1 })).toBe(true);
  keepFromFirst(2);
  expect(await isNever({ slot: first - 1 })).toBe(false);
});

test("an endpoint that does not say where its history begins proves nothing", async () => {
  const failing =
    (name: string) =>
    ({ method }: { method: string }) =>
      method === name ? { code: -32_601, message: "Method not found" } : undefined;
  const fail = (name: string) => {
    for (const { fault } of endpoints.slice(0, 2)) fault.fail(failing(name));
  };
  keepFromFirst(3);
  fail("getFirstAvailableBlock");
  expect(await isNever({ slot: first })).toBe(false);
  // Without the block, its slot is known, and no height.
  fail("getBlock");
  expect(await isNever({ slot: first })).toBe(true);
  expect(await isNever({ height: HEIGHT })).toBe(false);
  // Some endpoints return 0 when they do not know.
  keepFromFirst(0);
  expect(await isNever({ slot: first })).toBe(false);
  for (const { fault } of endpoints) fault.fail(undefined);
  expect(await isNever({ height: 0 })).toBe(true);
});

test("the slot of a first block without a height is the highest height that it can have", async () => {
  for (const { alter } of endpoints)
    alter((method, _params, result) => {
      if (method === "getFirstAvailableBlock") return first;
      return method === "getBlock" ? { ...(result as object), blockHeight: null } : result;
    });
  expect(await isNever({ height: first })).toBe(true);
  expect(await isNever({ height: first - 1 })).toBe(false);
});

test.each<[string, Earliest]>([
  ["slot", { slot: 0 }],
  ["height", { height: 0 }],
])(
  "endpoints whose history began an hour before the signing prove it, whatever first %s was reported",
  async (_, at) => {
    const signedAt = new Date();
    const hourAgo = Math.floor(signedAt.getTime() / 1_000) - 3_600;
    keepFromFirst(3, hourAgo);
    expect(await isNever({ ...at, signedAt })).toBe(true);
    expect(await isNever(at)).toBe(false);
    keepFromFirst(3, hourAgo + 1);
    expect(await isNever({ ...at, signedAt })).toBe(false);
    keepFromFirst(3, null);
    expect(await isNever({ ...at, signedAt })).toBe(false);
    keepFromFirst(2, hourAgo);
    expect(await isNever({ ...at, signedAt })).toBe(true);
  },
);

test.each<[string, Earliest]>([
  ["slot", { slot: 1_000_000 }],
  ["height", { height: 1_000_000 }],
])(
  "endpoints whose history begins an hour after the signing do not prove it, whatever first %s was reported",
  async (_, at) => {
    const signedAt = new Date();
    const hourLater = Math.ceil(signedAt.getTime() / 1_000) + 3_600;
    keepFromFirst(3, hourLater);
    expect(await isNever({ ...at, signedAt })).toBe(false);
    expect(await isNever(at)).toBe(true);
    keepFromFirst(3, hourLater - 2);
    expect(await isNever({ ...at, signedAt })).toBe(true);
  },
);
