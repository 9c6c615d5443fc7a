import { expect, test } from "vitest";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { readSystemStatus } from "../../../support/read-system-status.ts";
import { makeListedFixture, waitFinalized } from "../../../support/solana-history.ts";
import type { SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { sendDust, startTestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

// Its own cluster, because it is moved on by days.
const solana = await startTestSolana({ own: true });

/**
 * Makes a deployment with these endpoints, which has listed the transaction that made the treasury's account. The clock of a test
 * runs ahead of the cluster's, so any age is allowed.
 */
async function startFixture(rpcUrls: readonly string[]): Promise<SolanaMerchantFixture> {
  const some = await makeListedFixture(solana, { rpcUrls, change: { maxHeadAgeMs: null } });
  const isListed = async () => {
    await some.readHistory();
    const { signature } = await some.db.selectFrom("account_cursor").select("signature").executeTakeFirstOrThrow();
    return signature !== null;
  };
  await waitFor(isListed, { within: 20_000 });
  await readAll(some);
  return some;
}
const cursorOf = async ({ db }: SolanaMerchantFixture) => {
  const cursor = await db.selectFrom("account_cursor").selectAll().executeTakeFirstOrThrow();
  return { ...cursor, slot: Number(cursor.slot), listed_slot: Number(cursor.listed_slot) };
};
const listedAt = async ({ db }: SolanaMerchantFixture) =>
  (await db.selectFrom("account_cursor").select("listed_at").executeTakeFirstOrThrow()).listed_at;
const listed = async ({ db }: SolanaMerchantFixture) =>
  (await db.selectFrom("observation").select("tx_hash").execute()).map((row) => row.tx_hash).toSorted();
const listingAge = async ({ deps }: SolanaMerchantFixture) =>
  (await readSystemStatus(deps)).history[0]?.listingAgeSeconds;

async function sendFinal(some: SolanaMerchantFixture, count: number): Promise<string[]> {
  const signatures = await sendDust(solana, some.keys.treasury.address, count);
  await waitFinalized(solana, ...signatures);
  return signatures;
}

async function readAll(some: SolanaMerchantFixture): Promise<void> {
  while ((await some.readHistory()) === "more") some.clock.advance(1_000);
}

/** An endpoint that has kept these signatures only, as one does whose history begins later. */
const keepOnly =
  (kept: readonly string[]): Alter =>
  (method, _params, result) =>
    method === "getSignaturesForAddress"
      ? (result as { signature: string }[]).filter(({ signature }) => kept.includes(signature))
      : result;

test("deposits before the history of every endpoint hold the reading, and are booked when an endpoint has them", async () => {
  const poor = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([poor.url, poor.url]);
  const lost = await sendFinal(some, 2);
  const kept = await sendFinal(some, 2);
  const before = await listedAt(some);
  poor.alter(keepOnly(kept));
  for (let read = 0; read < 3; read += 1) {
    some.clock.advance(300_000);
    await expect(some.readHistory()).rejects.toMatchObject({ code: "history_short" });
  }
  expect((await cursorOf(some)).listing).toBeNull();
  expect(await listed(some)).toEqual(kept.toSorted());
  expect(await listedAt(some)).toEqual(before);
  expect(await listingAge(some)).toBeGreaterThanOrEqual(900);
  poor.alter(undefined);
  await readAll(some);
  expect(await listed(some)).toEqual([...lost, ...kept].toSorted());
  // The listing that was held had begun long before.
  await some.readHistory();
  expect(await listingAge(some)).toBeLessThan(60);
});

test("an endpoint whose history begins after the last listing is passed over", async () => {
  const poor = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([poor.url, solana.url]);
  const sent = await sendFinal(some, 3);
  poor.alter(keepOnly([]));
  await readAll(some);
  expect(await listed(some)).toEqual(sent.toSorted());
});

test.each([
  { what: "lists nothing before it", result: [] },
  { what: "returns an error", result: new RpcRefusal({ code: -32_602, message: "unknown signature" }) },
])("an endpoint that $what where another one's list ends does not end the listing", async ({ result }) => {
  const [short, poor] = [
    await startAlteringProxy({ target: solana.url }),
    await startAlteringProxy({ target: solana.url }),
  ];
  const some = await startFixture([short.url, poor.url]);
  const sent = await sendFinal(some, 4);
  let isCut = true;
  const isContinued = (params: unknown[]) => (params[1] as { before?: string }).before !== undefined;
  for (const endpoint of [short, poor])
    endpoint.alter((method, params, listing) => {
      if (method !== "getSignaturesForAddress") return listing;
      return isContinued(params) && isCut ? result : (listing as unknown[]).slice(0, 2);
    });
  await expect(some.readHistory()).rejects.toThrow();
  expect(await listed(some)).toHaveLength(2);
  isCut = false;
  await readAll(some);
  expect(await listed(some)).toEqual(sent.toSorted());
});

test("an endpoint that has lost the newest transaction of the last listing does not end the next one", async () => {
  const poor = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([poor.url, poor.url]);
  const known = await sendFinal(some, 3);
  // Both endpoints have reached their slots by as much as a listing allows for.
  await solana.knobs.jump(20);
  await readAll(some);
  const lost = await sendFinal(some, 1);
  poor.alter((method, _params, result) =>
    method === "getSignaturesForAddress"
      ? (result as { signature: string }[]).filter(({ signature }) => ![...known, ...lost].includes(signature))
      : result,
  );
  await expect(some.readHistory()).rejects.toMatchObject({ code: "history_short" });
  poor.alter(undefined);
  await readAll(some);
  expect(await listed(some)).toEqual([...known, ...lost].toSorted());
});

/** An endpoint whose history begins at a slot, so that it neither knows nor lists what is older. */
const keepFrom =
  (slot: number): Alter =>
  (method, _params, result) => {
    if (method === "getFirstAvailableBlock") return slot;
    if (method !== "getSignaturesForAddress") return result;
    return (result as { slot: number }[]).filter((one) => one.slot >= slot);
  };

const DAY_SLOTS = 216_000;

test("a token without deposits for longer than the endpoints keep their history stops nothing, and costs one call a listing to each endpoint", async () => {
  const poor = await startAlteringProxy({ target: solana.url });
  const proxy = await startFaultProxy({ target: poor.url });
  const some = await startFixture([proxy.url]);
  await solana.knobs.jump(DAY_SLOTS + 1_000);
  await some.readHistory();
  const before = await cursorOf(some);
  poor.alter(keepFrom(before.listed_slot - 100));
  const countCalls = async () => {
    const calls = { ...proxy.calls };
    some.clock.advance(300_000);
    await some.readHistory();
    const count = (method: string) => (proxy.calls[method] ?? 0) - (calls[method] ?? 0);
    return [count("getSignaturesForAddress"), count("getFirstAvailableBlock")];
  };
  expect(await countCalls()).toEqual([2, 0]);
  // After a short downtime, each of the two endpoints says where its history begins.
  await solana.knobs.jump(1_000);
  expect(await countCalls()).toEqual([2, 2]);
  expect(await countCalls()).toEqual([2, 0]);
  const after = await cursorOf(some);
  // The cluster need not have made a slot of its own meanwhile.
  expect(after.listed_slot).toBeGreaterThanOrEqual(before.listed_slot + 1_000);
  expect(after.signature).toBe(before.signature);
  const sent = await sendFinal(some, 2);
  await readAll(some);
  expect(await listed(some)).toEqual(sent.toSorted());
});

test("deposits before the history of every endpoint also hold the reading of a token that had none for long", async () => {
  const poor = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([poor.url]);
  await solana.knobs.jump(DAY_SLOTS + 1_000);
  await some.readHistory();
  const { listed_slot: listedSlot } = await cursorOf(some);
  // The service is down for longer than the endpoint keeps its history.
  const lost = await sendFinal(some, 2);
  await solana.knobs.jump(1_000);
  poor.alter(keepFrom(listedSlot + 900));
  const before = await listedAt(some);
  for (let reads = 0; reads < 2; reads += 1) {
    some.clock.advance(300_000);
    await expect(some.readHistory()).rejects.toMatchObject({ code: "history_short" });
  }
  expect(await listedAt(some)).toEqual(before);
  poor.alter(undefined);
  await readAll(some);
  expect(await listed(some)).toEqual(lost.toSorted());
});

test("what one endpoint lists is booked although another one says that its history goes back and lists nothing", async () => {
  const gap = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([gap.url, solana.url]);
  await solana.knobs.jump(DAY_SLOTS + 1_000);
  await some.readHistory();
  const { listed_slot: listedSlot } = await cursorOf(some);
  const sent = await sendFinal(some, 1);
  await solana.knobs.jump(1_000);
  gap.alter((method, _params, result) => {
    if (method === "getFirstAvailableBlock") return listedSlot - 100;
    return method === "getSignaturesForAddress" ? [] : result;
  });
  await readAll(some);
  expect(await listed(some)).toEqual(sent.toSorted());
});

test("a read lists the history with one call to each endpoint, and reads no transaction again", async () => {
  const proxy = await startFaultProxy({ target: solana.url });
  const some = await startFixture([proxy.url]);
  const count = (method: string) => proxy.calls[method] ?? 0;
  const [began, reads] = [count("getSignaturesForAddress"), count("getTransaction")];
  await some.readHistory();
  await sendFinal(some, 3);
  await some.readHistory();
  await some.readHistory();
  expect(count("getSignaturesForAddress") - began).toBe(6);
  expect(count("getTransaction") - reads).toBe(3);
});
