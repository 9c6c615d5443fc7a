import { randomBytes } from "node:crypto";
import { PublicKey } from "@solana/web3.js";
import { expect, test } from "vitest";
import { encodeBase58 } from "../../../../chains/solana/base58.ts";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { listObserved, makeListedFixture, payUnsolicited, sendDeposits } from "../../../support/solana-history.ts";
import type { SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";
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

async function listAll({ chain }: SolanaMerchantFixture) {
  const [token] = chain.tokens.values();
  const account = new PublicKey(token?.treasuryAccount ?? "");
  return solana.client.connection.getSignaturesForAddress(account, {}, "finalized");
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
  const before = await sendDeposits(solana, some, 1);
  const paymentId = await payUnsolicited(solana, some, await fundSolanaBuyer(solana));
  const after = await sendDeposits(solana, some, 2);
  const all = await listAll(some);
  const known = [...before, ...after];
  const paid = all.find(({ signature }) => !known.includes(signature))?.signature ?? "";
  first.alter(leaveOut([paid]));
  await moveOn(some);
  first.alter(undefined);
  expect(await listObserved(some)).toContain(paid);
  expect(await disagreements(some)).toBe(1);
  await some.watchUntilState(paymentId, "succeeded");
});

test("what an endpoint leaves out while the other one does not answer is listed again when it answers", async () => {
  const { some, first, second } = await startFixture();
  const { listed_slot: before } = await cursorOf(some);
  const [lost = ""] = await sendDeposits(solana, some, 1);
  const kept = await sendDeposits(solana, some, 2);
  first.alter(leaveOut([lost]));
  second.alter(isRefused);
  await moveOn(some);
  await moveOn(some);
  expect((await listObserved(some)).toSorted()).toEqual(kept.toSorted());
  // An endpoint that does not answer holds nothing.
  const alone = await cursorOf(some);
  expect(Number(alone.listed_slot)).toBeGreaterThan(Number(before));
  expect(Number(alone.relist_slot)).toBe(Number(before));
  first.alter(undefined);
  second.alter(undefined);
  await moveOn(some);
  expect(await listObserved(some)).toContain(lost);
  expect(await cursorOf(some)).toMatchObject({ relist_slot: null, relist_before: null });
});

/** Makes the first endpoint leave one transaction out of a listing for which the second one does not answer. Returns it and the other ones. */
async function loseOne({ some, first, second }: Awaited<ReturnType<typeof startFixture>>) {
  await moveOn(some);
  // One by one, so that pages have an order, and listings end at a known transaction.
  const [lost = ""] = await sendDeposits(solana, some, 1);
  for (let count = 0; count < 3; count += 1) await sendDeposits(solana, some, 1);
  first.alter(leaveOut([lost]));
  second.alter(isRefused);
  for (let count = 0; count < 2; count += 1) await moveOn(some);
  expect(await cursorOf(some)).toMatchObject({ relist_slot: expect.any(Number), until_signature: expect.any(String) });
  expect(await listObserved(some)).not.toContain(lost);
  return { lost, others: (await listAll(some)).filter(({ signature }) => signature !== lost) };
}

/** Returns true for a call that lists the history again: new transactions are listed `until` a known one. */
const isRelisting = (method: string, [_account, bounds]: unknown[]) =>
  method === "getSignaturesForAddress" && (bounds as { until?: string }).until === undefined;
const beforeOf = ([_account, bounds]: unknown[]) => (bounds as { before?: string }).before;

test("an endpoint that ends its page at a transaction that does not exist does not end what the other one lists again", async () => {
  const fixture = await startFixture();
  const { some, first: liar, second: honest } = fixture;
  const { lost, others } = await loseOne(fixture);
  const invented = { ...others[0], signature: encodeBase58(randomBytes(64)) };
  liar.alter((method, params, result) => {
    if (!isRelisting(method, params)) return result;
    return beforeOf(params) === undefined ? [invented] : others;
  });
  honest.alter((method, params, result) => {
    if (!isRelisting(method, params)) return result;
    return beforeOf(params) === invented.signature ? [] : (result as unknown[]).slice(0, 2);
  });
  for (let count = 0; count < 3; count += 1) await moveOn(some);
  expect(await listObserved(some)).toContain(lost);
  expect(await cursorOf(some)).toMatchObject({ relist_slot: null, relist_before: null, relist_at: null });
});

test("an endpoint that lists nothing again does not end what the other one lists again", async () => {
  const fixture = await startFixture();
  const { some, first, second } = fixture;
  const { lost } = await loseOne(fixture);
  first.alter((method, params, result) => (isRelisting(method, params) ? [] : result));
  // The transaction is not on its first page.
  second.alter((method, params, result) => (isRelisting(method, params) ? (result as unknown[]).slice(0, 2) : result));
  await moveOn(some);
  expect(await listObserved(some)).toContain(lost);
  expect(some.lines.join("")).toContain("does not list the treasury's history again");
  expect((await cursorOf(some)).relist_slot).toBeNull();
});

test("what is listed again and not read yet holds no payout of a process that began before it was sent", async () => {
  const fixture = await startFixture();
  const { some, first, second } = fixture;
  const { lost } = await loseOne(fixture);
  for (const endpoint of [first, second])
    endpoint.alter((method, [signature], result) =>
      method === "getTransaction" && signature === lost ? null : result,
    );
  await moveOn(some);
  const entries = await some.db.selectFrom("history_entry").select("signature").execute();
  expect(entries).toEqual([{ signature: lost }]);
  const isRead = async ({ deps }: Pick<SolanaMerchantFixture, "deps">) => {
    await moveOn(some);
    await some.watchOnly();
    return isCaughtUp(deps, solana.id);
  };
  await waitFor(() => isRead(some), { within: 20_000 });
  expect(await isRead(await some.anotherProcess())).toBe(false);
});

test("a listing waits half a minute for an endpoint that lags, and reads meanwhile what the other one lists", async () => {
  const { some, second } = await startFixture();
  const slotOf = async () => Number((await cursorOf(some)).listed_slot);
  await moveOn(some);
  const before = await slotOf();
  const sent = await sendDeposits(solana, some, 2);
  second.alter(isBehind);
  await moveOn(some);
  expect(await slotOf()).toBe(before);
  expect((await listObserved(some)).toSorted()).toEqual(sent.toSorted());
  some.clock.advance(30_000);
  await moveOn(some);
  expect(await slotOf()).toBeGreaterThan(before);
});

test("the operator has the history listed again from a slot, and what was read is not read again", async () => {
  const { some, first, second } = await startFixture();
  const kept = await sendDeposits(solana, some, 2);
  await moveOn(some);
  const lost = await sendDeposits(solana, some, 1);
  for (const endpoint of [first, second]) endpoint.alter(leaveOut(lost));
  await moveOn(some);
  kept.push(...(await sendDeposits(solana, some, 2)));
  await moveOn(some);
  let reads = 0;
  const countReads: Alter = (method, _params, result) => {
    if (method === "getTransaction") reads += 1;
    return result;
  };
  for (const endpoint of [first, second]) endpoint.alter(countReads);
  await moveOn(some);
  expect((await listObserved(some)).toSorted()).toEqual(kept.toSorted());
  await some.db.updateTable("account_cursor").set({ relist_slot: 1, relist_before: null, relist_at: null }).execute();
  await moveOn(some);
  expect((await listObserved(some)).toSorted()).toEqual([...kept, ...lost].toSorted());
  expect(reads).toBe(1);
  expect((await cursorOf(some)).relist_slot).toBeNull();
});

test("a payment that a transaction names is known by the memo of one endpoint, although the other one lists none, and a slot that is too high", async () => {
  const { some, first, second } = await startFixture();
  const refuseReads: Alter = (method, _params, result) =>
    method === "getTransaction" ? new RpcRefusal({ code: -32_603, message: "internal" }) : result;
  first.alter(refuseReads);
  second.alter((method, params, result) =>
    method === "getSignaturesForAddress"
      ? (result as { slot: number }[]).map((one) => ({ ...one, memo: null, slot: one.slot + 1_000_000 }))
      : refuseReads(method, params, result),
  );
  await payUnsolicited(solana, some, await fundSolanaBuyer(solana));
  await some.readHistory();
  const entries = await some.db.selectFrom("history_entry").selectAll().execute();
  const slot = await solana.client.connection.getSlot();
  expect(entries.filter(({ urgent }) => urgent)).toHaveLength(1);
  expect(entries.filter((one) => one.slot > slot)).toEqual([]);
});
