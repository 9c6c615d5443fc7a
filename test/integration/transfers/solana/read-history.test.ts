import { beforeEach, expect, onTestFinished, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { makeListedFixture, payUnsolicited, waitFinalized } from "../../../support/solana-history.ts";
import type { SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, sendDust, startTestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

const solana = await startTestSolana();
const buyer = await fundSolanaBuyer(solana);
const proxy: FaultProxy = await startFaultProxy({ target: solana.url });

/**
 * Makes a deployment with these endpoints. The clock of a test runs ahead of the cluster's, so any age is allowed. Tests hold
 * responses back for longer than a call may take on a slow machine.
 */
const startFixture = (change: Record<string, unknown> = {}, rpcUrls = [proxy.url, proxy.url]) =>
  makeListedFixture(solana, { rpcUrls, change: { maxHeadAgeMs: null, rpcTimeoutMs: 600_000, ...change } });

const fixture = await startFixture();

// Everything that earlier tests sent is read and booked first.
beforeEach(async () => {
  proxy.hold(undefined);
  proxy.fail(undefined);
  proxy.onAnswer(undefined);
  await readAll();
  const isBooked = async () =>
    (await observations()).every(({ booked, transfer_id }) => booked || transfer_id !== null);
  await fixture.watchUntil(isBooked);
});

const treasuryOf = (some: SolanaMerchantFixture) => some.keys.treasury.address;
/** Runs the reader until nothing is left, and lets the clock advance between runs. */
async function readAll(some = fixture): Promise<void> {
  while ((await some.readHistory()) === "more" || (await entries(some)).length > 0) some.clock.advance(1_000);
}
const sum = (count: number) => BigInt((count * (count + 1)) / 2);
const entries = (some = fixture) =>
  some.db.selectFrom("history_entry").selectAll().orderBy("slot").orderBy("signature").execute();
const observations = (some = fixture) => some.db.selectFrom("observation").selectAll().execute();
const exceptions = async () =>
  (await listBalances(fixture.db, { account: "exceptions", asset: solana.asset }))[0]?.amount ?? 0n;

/** Sends dust and lists it without reading any of it. */
async function listDust(count: number, some = fixture): Promise<string[]> {
  const signatures = await sendDust(solana, treasuryOf(some), count);
  await waitFinalized(solana, ...signatures);
  proxy.fail(({ method }) => (method === "getTransaction" ? { code: -32_000, message: "not now" } : undefined));
  await some.readHistory();
  proxy.fail(undefined);
  await some.db.updateTable("history_entry").set({ attempts_made: 0, due_at: some.clock.now() }).execute();
  return signatures;
}

test("passes that confirm a payment read none of the waiting dust", async () => {
  // Token accounts that our own transactions changed are read as well, once these are final.
  await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
  await listDust(60);
  const before = proxy.calls["getTransaction"] ?? 0;
  // Another job reads the dust from an endpoint that responds only after the payment is confirmed.
  const { promise, resolve } = Promise.withResolvers<void>();
  onTestFinished(() => resolve());
  proxy.onAnswer((method) => (method === "getTransaction" ? promise : undefined));
  const reading = fixture.readHistory();
  expect((await fixture.status(await fixture.pay(buyer))).state).toBe("succeeded");
  // By then only the concurrent reads of the job have been made.
  expect((proxy.calls["getTransaction"] ?? 0) - before).toBeLessThanOrEqual(16);
  expect(await entries()).toHaveLength(60);
  proxy.onAnswer(undefined);
  resolve();
  await reading;
});

test("dust is read with bounded concurrency and booked to the last unit", async () => {
  const booked = await exceptions();
  await listDust(60);
  let [atOnce, most] = [0, 0];
  // The first sixteen wait for each other, and then for a moment in which a seventeenth would arrive.
  const { promise: areThere, resolve } = Promise.withResolvers<void>();
  onTestFinished(() => resolve());
  proxy.hold(({ method }) => {
    if (method !== "getTransaction") return undefined;
    atOnce += 1;
    most = Math.max(most, atOnce);
    if (atOnce === 16) setTimeout(resolve, 30);
    return areThere;
  });
  proxy.onAnswer((method) => {
    if (method === "getTransaction") atOnce -= 1;
  });
  await readAll();
  proxy.hold(undefined);
  proxy.onAnswer(undefined);
  expect(most).toBe(16);
  await fixture.watchUntil(async () => (await exceptions()) === booked - sum(60));
});

test("no more transactions are read per second than the network's entry allows", async () => {
  const slow = await startFixture({ historyReadsPerSecond: 20 });
  const signatures = await sendDust(solana, treasuryOf(slow), 30);
  await waitFinalized(solana, ...signatures);
  const began = Date.now();
  while ((await observations(slow)).length < 30) await slow.readHistory();
  expect(Date.now() - began).toBeGreaterThanOrEqual(1_000);
});

test("a history of many pages is read completely and once, although listing and reading fail at any point", async () => {
  // An endpoint that returns at most nine signatures at once.
  const short = await startAlteringProxy({ target: proxy.url });
  short.alter((method, _params, result) =>
    method === "getSignaturesForAddress" ? (result as unknown[]).slice(0, 9) : result,
  );
  const some = await startFixture({}, [short.url, short.url]);
  await waitFinalized(solana, ...(await sendDust(solana, treasuryOf(some), 60)));
  let calls = 0;
  // The endpoint fails for six calls in the middle of the listing and of the reads: a call that fails is made again elsewhere.
  proxy.fail(({ method }) => {
    if (method !== "getSignaturesForAddress" && method !== "getTransaction") return undefined;
    calls += 1;
    return calls % 20 >= 3 && calls % 20 <= 8 ? { code: -32_000, message: "not now" } : undefined;
  });
  let failures = 0;
  for (let end = "more"; end === "more" || (await entries(some)).length > 0; some.clock.advance(60_000))
    end = await some.readHistory().catch(() => {
      failures += 1;
      return "more";
    });
  proxy.fail(undefined);
  expect(failures).toBeGreaterThan(0);
  expect((await observations(some)).map(({ amount }) => amount).toSorted((a, b) => Number(a - b))).toEqual(
    Array.from({ length: 60 }, (_, index) => BigInt(index + 1)),
  );
});

test("two jobs that read the same history at once record each transaction once", async () => {
  const other = await fixture.anotherProcess();
  const [booked, before] = [await exceptions(), (await observations()).length];
  await waitFinalized(solana, ...(await sendDust(solana, treasuryOf(fixture), 60)));
  await Promise.all([fixture.readHistory(), other.readHistory(), fixture.readHistory()]);
  await readAll();
  expect(await observations()).toHaveLength(before + 60);
  await fixture.watchUntil(async () => (await exceptions()) === booked - sum(60));
});

test("a transfer that names a payment is read before the dust that came before it", async () => {
  const slow = await startFixture({ historyReadsPerSecond: 1 });
  await sendDust(solana, treasuryOf(slow), 40);
  const paymentId = await payUnsolicited(solana, slow, buyer);
  await slow.readHistory();
  const [transfer] = await slow.transfers();
  expect(transfer).toMatchObject({ payment_id: paymentId, state: "included" });
  expect((await entries(slow)).length).toBeGreaterThan(20);
  while ((await slow.status(paymentId)).state !== "succeeded") await slow.watchOnly(new AbortController().signal);
});

test("payouts wait for dust that was there before their process started, and not for later dust", async () => {
  await fixture.watchOnly();
  await listDust(30);
  // One pass may not reach the head.
  const isUpToDate = async () => {
    await fixture.watchOnly();
    return isCaughtUp(fixture.deps, solana.id);
  };
  await waitFor(isUpToDate, { within: 20_000, what: "a watcher that is caught up" });
  expect(await entries()).toHaveLength(30);
  const { deps: restarted } = await fixture.anotherProcess();
  const isReady = async () => {
    fixture.clock.advance(10);
    await fixture.watchOnly();
    return isCaughtUp(restarted, solana.id);
  };
  expect(await isReady()).toBe(false);
  // More has come since than was read before: it does not count.
  await readAll();
  await listDust(10);
  expect(await entries()).toHaveLength(10);
  await waitFor(isReady, { within: 20_000, what: "payouts" });
  expect(await entries()).toHaveLength(10);
});

test("a slot counts as booked only when everything up to it was read", async () => {
  const [first] = await listDust(20);
  const finalNumber = async () =>
    (await fixture.db.selectFrom("chain_cursor").select("final_number").executeTakeFirstOrThrow()).final_number;
  const slot = (await solana.client.connection.getSignatureStatus(first ?? "")).value?.slot ?? 0;
  for (let pass = 0; pass < 20; pass += 1) await fixture.watchOnly(new AbortController().signal);
  expect(await finalNumber()).toBeLessThan(slot);
  await fixture.watchUntil(async () => (await finalNumber()) >= slot);
});
