import { expect, test } from "vitest";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { makeListedFixture, payUnsolicited, waitFinalized } from "../../../support/solana-history.ts";
import type { SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, sendDust, startTestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

const solana = await startTestSolana({ own: true });

/** Makes a deployment with two endpoints, which has listed the transaction that made the treasury's account. */
async function startFixture() {
  const first = await startAlteringProxy({ target: solana.url });
  const second = await startAlteringProxy({ target: solana.url });
  const rpcUrls = [first.url, second.url];
  const some = await makeListedFixture(solana, { rpcUrls, change: { maxHeadAgeMs: null } });
  const isListed = async () => {
    await some.readHistory();
    return (await cursorOf(some)).signature !== null;
  };
  await waitFor(isListed, { within: 20_000 });
  return { some, first, second };
}

const cursorOf = ({ db }: SolanaMerchantFixture) =>
  db.selectFrom("account_cursor").selectAll().executeTakeFirstOrThrow();
const observed = async ({ db }: SolanaMerchantFixture) =>
  (await db.selectFrom("observation").select("tx_hash").execute()).map((row) => row.tx_hash);

async function sendFinal(some: SolanaMerchantFixture, count: number): Promise<string[]> {
  const signatures = await sendDust(solana, some.keys.treasury.address, count);
  await waitFinalized(solana, ...signatures);
  return signatures;
}

/** Moves the cluster on, so that listings count the transactions so far as listed. */
async function moveOn(some: SolanaMerchantFixture): Promise<void> {
  await solana.knobs.jump(20);
  some.clock.advance(2_000);
  while ((await some.readHistory()) === "more") some.clock.advance(1_000);
}

/** An endpoint that leaves transactions out of its lists. */
const leaveOut =
  (lost: readonly string[]): Alter =>
  (method, _params, result) =>
    method === "getSignaturesForAddress"
      ? (result as { signature: string }[]).filter(({ signature }) => !lost.includes(signature))
      : result;
const isRefused: Alter = (method, _params, result) =>
  method === "getSignaturesForAddress" ? new RpcRefusal({ code: -32_603, message: "internal" }) : result;
const isBehind: Alter = (method, _params, result) =>
  method === "getSignaturesForAddress" ? new RpcRefusal({ code: -32_016, message: "slot not reached" }) : result;

const disagreements = async ({ deps }: SolanaMerchantFixture) =>
  (await deps.metrics.endpointDisagreements.get()).values.filter(({ value }) => value > 0).length;

test("a deposit that the first endpoint leaves out of one list succeeds, and the endpoint is reported", async () => {
  const { some, first } = await startFixture();
  const before = await sendFinal(some, 1);
  const paymentId = await payUnsolicited(solana, some, await fundSolanaBuyer(solana));
  const after = await sendFinal(some, 2);
  const { connection } = solana.client;
  const [token] = some.chain.tokens.values();
  if (!token) throw new Error("there is no token");
  const { PublicKey } = await import("@solana/web3.js");
  const all = await connection.getSignaturesForAddress(new PublicKey(token.treasuryAccount), {}, "finalized");
  const known = [...before, ...after];
  const paid = all.find(({ signature }) => !known.includes(signature))?.signature ?? "";
  first.alter(leaveOut([paid]));
  await moveOn(some);
  first.alter(undefined);
  expect(await observed(some)).toContain(paid);
  expect(await disagreements(some)).toBe(1);
  await some.watchUntilState(paymentId, "succeeded");
});

test("what an endpoint leaves out while the other one does not answer is listed again when it answers", async () => {
  const { some, first, second } = await startFixture();
  const { listed_slot: before } = await cursorOf(some);
  const [lost = ""] = await sendFinal(some, 1);
  const kept = await sendFinal(some, 2);
  first.alter(leaveOut([lost]));
  second.alter(isRefused);
  await moveOn(some);
  await moveOn(some);
  expect((await observed(some)).toSorted()).toEqual(kept.toSorted());
  // An endpoint that does not answer holds nothing.
  const alone = await cursorOf(some);
  expect(Number(alone.listed_slot)).toBeGreaterThan(Number(before));
  expect(Number(alone.relist_slot)).toBe(Number(before));
  first.alter(undefined);
  second.alter(undefined);
  await moveOn(some);
  expect(await observed(some)).toContain(lost);
  expect(await cursorOf(some)).toMatchObject({ relist_slot: null, relist_before: null });
});

test("a listing waits half a minute for an endpoint that lags, and reads meanwhile what the other one lists", async () => {
  const { some, second } = await startFixture();
  const slotOf = async () => Number((await cursorOf(some)).listed_slot);
  await moveOn(some);
  const before = await slotOf();
  const sent = await sendFinal(some, 2);
  second.alter(isBehind);
  await moveOn(some);
  expect(await slotOf()).toBe(before);
  expect((await observed(some)).toSorted()).toEqual(sent.toSorted());
  some.clock.advance(30_000);
  await moveOn(some);
  expect(await slotOf()).toBeGreaterThan(before);
});

test("the operator has the history listed again from a slot, and what was read is not read again", async () => {
  const { some, first, second } = await startFixture();
  const kept = await sendFinal(some, 2);
  await moveOn(some);
  const lost = await sendFinal(some, 1);
  for (const endpoint of [first, second]) endpoint.alter(leaveOut(lost));
  await moveOn(some);
  kept.push(...(await sendFinal(some, 2)));
  await moveOn(some);
  let reads = 0;
  const countReads: Alter = (method, _params, result) => {
    if (method === "getTransaction") reads += 1;
    return result;
  };
  for (const endpoint of [first, second]) endpoint.alter(countReads);
  await moveOn(some);
  expect((await observed(some)).toSorted()).toEqual(kept.toSorted());
  await some.db.updateTable("account_cursor").set({ relist_slot: 1, relist_before: null }).execute();
  await moveOn(some);
  expect((await observed(some)).toSorted()).toEqual([...kept, ...lost].toSorted());
  expect(reads).toBe(1);
  expect((await cursorOf(some)).relist_slot).toBeNull();
});
