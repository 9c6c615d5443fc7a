import { beforeEach, expect, test } from "vitest";
import { listBalances } from "../../../db/balances.ts";
import { isCaughtUp } from "../../../transfers/caught-up.ts";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { fundSolanaBuyer, sendDust, sendTokens, startTestSolana } from "../../support/solana.ts";
import { makeSolanaTill, type SolanaTill } from "../../support/solana-till.ts";
import { waitFor } from "../../support/wait-for.ts";

const solana = await startTestSolana();
const buyer = await fundSolanaBuyer(solana);
const proxy: FaultProxy = await startFaultProxy({ target: solana.url });

/** A deployment of its own, whose history has been listed once. */
async function startTill(change: Record<string, unknown> = {}, rpcUrls = [proxy.url, proxy.url]): Promise<SolanaTill> {
  const made = await makeSolanaTill(solana, { rpcUrls, change: { historyReadsPerSecond: 10_000, ...change } });
  await made.readHistory();
  return made;
}

const till = await startTill();

// Everything that an earlier test has sent is read and booked.
beforeEach(async () => {
  proxy.delay(0);
  proxy.fail(undefined);
  await readAll();
  await till.watchOnly();
});

const treasuryOf = (some: SolanaTill) => some.keys.treasury.address;
/** Runs of the reader until nothing is left, each with the time that the one before was late. */
async function readAll(some = till): Promise<void> {
  while ((await some.readHistory()) === "more" || (await entries(some)).length > 0) some.clock.advance(1_000);
}
const sum = (count: number) => BigInt((count * (count + 1)) / 2);
const entries = (some = till) =>
  some.db.selectFrom("history_entry").selectAll().orderBy("slot").orderBy("signature").execute();
const sightings = (some = till) => some.db.selectFrom("sighting").selectAll().execute();
const exceptions = async () =>
  (await listBalances(till.db, { account: "exceptions", asset: solana.asset }))[0]?.amount ?? 0n;

/** Sends dust and has it listed; nothing of it is read. */
async function listDust(count: number, some = till): Promise<string[]> {
  const signatures = await sendDust(solana, treasuryOf(some), count);
  await finalize(signatures.at(-1));
  proxy.fail(({ method }) => (method === "getTransaction" ? { code: -32_000, message: "not now" } : undefined));
  await some.readHistory();
  proxy.fail(undefined);
  await some.db.updateTable("history_entry").set({ tries: 0, due_at: some.clock.now() }).execute();
  return signatures;
}

/** A buyer's own transfer that names a payment, of which we hear only by the history. */
async function payUnsolicited(some: SolanaTill): Promise<string> {
  const paymentId = await some.create();
  const [option] = await some.offer(paymentId, buyer);
  const { authorization_nonce: memo } = await some.db
    .selectFrom("payment_option")
    .select("authorization_nonce")
    .where("id", "=", option?.id ?? "")
    .executeTakeFirstOrThrow();
  await finalize(await sendTokens(solana, { from: buyer, to: treasuryOf(some), amount: 1_000_000n, memo }));
  return paymentId;
}

async function finalize(signature: string | undefined): Promise<void> {
  const isFinal = async () =>
    (await solana.client.connection.getSignatureStatus(signature ?? "")).value?.confirmationStatus === "finalized";
  await waitFor(isFinal, { within: 10_000 });
}

test("a payment is confirmed by passes that read nothing of the dust that waits", async () => {
  await listDust(60);
  const before = proxy.calls.getTransaction ?? 0;
  // Another job reads the dust, from an endpoint that does not answer before the payment is confirmed.
  const { promise, resolve } = Promise.withResolvers<void>();
  proxy.onAnswer((method) => (method === "getTransaction" ? promise : undefined));
  const reading = till.readHistory();
  expect((await till.status(await till.pay(buyer))).state).toBe("succeeded");
  // All that was asked by then is what the job asks side by side.
  expect((proxy.calls.getTransaction ?? 0) - before).toBeLessThanOrEqual(16);
  expect(await entries()).toHaveLength(60);
  proxy.onAnswer(undefined);
  resolve();
  await reading;
});

test("dust is read side by side, a bounded number at once, and booked to the last unit", async () => {
  const booked = await exceptions();
  await listDust(60);
  let [atOnce, most] = [0, 0];
  proxy.delay(30, ({ method }) => {
    if (method === "getTransaction") {
      atOnce += 1;
      most = Math.max(most, atOnce);
    }
    return method === "getTransaction";
  });
  proxy.onAnswer((method) => {
    if (method === "getTransaction") atOnce -= 1;
  });
  await readAll();
  proxy.onAnswer(undefined);
  expect(most).toBe(16);
  await till.watchUntil(async () => (await exceptions()) === booked - sum(60));
});

test("no more transactions are read in a second than the network's entry says", async () => {
  const slow = await startTill({ historyReadsPerSecond: 20 });
  await sendDust(solana, treasuryOf(slow), 30);
  const began = Date.now();
  while ((await sightings(slow)).length < 30) await slow.readHistory();
  expect(Date.now() - began).toBeGreaterThanOrEqual(1_000);
});

test("a history of many pages, whose listing and reading break off at any moment, is read whole and once", async () => {
  // An endpoint that gives no more than nine at once.
  const short = await startAlteringProxy({ target: proxy.url });
  short.alter((method, _params, result) =>
    method === "getSignaturesForAddress" ? (result as unknown[]).slice(0, 9) : result,
  );
  const some = await startTill({}, [short.url, short.url]);
  await finalize((await sendDust(solana, treasuryOf(some), 60)).at(-1));
  let calls = 0;
  // It goes away in the middle of the listing, and of parts that are read.
  proxy.fail(({ method }) => {
    if (method === "getSignaturesForAddress" || method === "getTransaction") calls += 1;
    return calls % 20 === 3 ? { code: -32_000, message: "not now" } : undefined;
  });
  let brokeOff = 0;
  for (let end = "more"; end === "more" || (await entries(some)).length > 0; some.clock.advance(60_000))
    end = await some.readHistory().catch(() => {
      brokeOff += 1;
      return "more";
    });
  proxy.fail(undefined);
  expect(brokeOff).toBeGreaterThan(0);
  expect((await sightings(some)).map(({ amount }) => amount).toSorted((a, b) => Number(a - b))).toEqual(
    Array.from({ length: 60 }, (_, index) => BigInt(index + 1)),
  );
});

test("two jobs that read the same history at the same moment record each transaction once", async () => {
  const other = await till.anotherProcess();
  const [booked, before] = [await exceptions(), (await sightings()).length];
  await finalize((await sendDust(solana, treasuryOf(till), 60)).at(-1));
  await Promise.all([till.readHistory(), other.readHistory(), till.readHistory()]);
  await readAll();
  expect(await sightings()).toHaveLength(before + 60);
  await till.watchUntil(async () => (await exceptions()) === booked - sum(60));
});

test("money that names a payment is read before the dust that came before it", async () => {
  const slow = await startTill({ historyReadsPerSecond: 1 });
  await sendDust(solana, treasuryOf(slow), 40);
  const paymentId = await payUnsolicited(slow);
  await slow.readHistory();
  const [transfer] = await slow.transfers();
  expect(transfer).toMatchObject({ payment_id: paymentId, state: "included" });
  expect((await entries(slow)).length).toBeGreaterThan(20);
  while ((await slow.status(paymentId)).state !== "succeeded") await slow.watchOnly(new AbortController().signal);
});

test("payouts go on while dust waits that came after their process began, and wait for what was there before", async () => {
  await till.watchOnly();
  await listDust(30);
  await till.watchOnly();
  expect(await entries()).toHaveLength(30);
  expect(await isCaughtUp(till.deps, solana.id)).toBe(true);
  const { deps: restarted } = await till.anotherProcess();
  const isReady = async () => {
    till.clock.advance(10);
    await till.watchOnly();
    return isCaughtUp(restarted, solana.id);
  };
  expect(await isReady()).toBe(false);
  // What has come since is more than was read: it does not count.
  await readAll();
  await listDust(10);
  expect(await entries()).toHaveLength(10);
  expect(await isReady()).toBe(true);
});

test("a slot is called booked only when everything up to it was read", async () => {
  const [first] = await listDust(20);
  const finalNumber = async () =>
    (await till.db.selectFrom("chain_cursor").select("final_number").executeTakeFirstOrThrow()).final_number;
  const slot = (await solana.client.connection.getSignatureStatus(first ?? "")).value?.slot ?? 0;
  for (let turns = 0; turns < 20; turns += 1) await till.watchOnly(new AbortController().signal);
  expect(await finalNumber()).toBeLessThan(slot);
  await till.watchUntil(async () => (await finalNumber()) >= slot);
});
