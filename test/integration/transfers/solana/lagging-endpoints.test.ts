import { sql } from "kysely";
import { afterEach, expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });

afterEach(async () => {
  await solana.knobs.drop(0);
  await solana.knobs.resume();
});

type InContext = { context: { slot: number }; value: unknown[] };

test("a slot counts as booked only when an endpoint that has reached it has reported every status up to it", async () => {
  const [behind, ahead] = await Promise.all([1, 2].map(() => startAlteringProxy({ target: solana.url })));
  if (!behind || !ahead) throw new Error("there are no endpoints");
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [behind.url, ahead.url] });
  await fixture.pay(await fundSolanaBuyer(solana));
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
  // Statuses come from a node that has seen no slot since; all other results are unaltered.
  const stuckAt = await solana.client.connection.getSlot("processed");
  behind.alter((method, _params, result) =>
    method === "getSignatureStatuses"
      ? { context: { slot: stuckAt }, value: (result as InContext).value.map(() => null) }
      : result,
  );
  await fixture.submit();
  const [transaction] = (await fixture.transactions()).slice(-1);
  const landed = async () =>
    (await solana.client.connection.getSignatureStatus(transaction?.hash ?? "")).value?.confirmationStatus;
  await fixture.watchUntil(async () => (await landed()) === "finalized");
  const slotOf = async () =>
    (await solana.client.connection.getSignatureStatus(transaction?.hash ?? "")).value?.slot ?? 0;
  const finalNumber = async () =>
    (await fixture.db.selectFrom("chain_cursor").select("final_number").executeTakeFirstOrThrow()).final_number;
  for (let pass = 0; pass < 10; pass += 1) await fixture.watch();
  expect(await finalNumber()).toBeLessThan(await slotOf());

  behind.alter(undefined);
  await fixture.watchUntil(async () => (await finalNumber()) >= (await slotOf()));
  const booked = await fixture.db
    .selectFrom("transaction")
    .select("state")
    .where(sql<boolean>`hash = ${transaction?.hash}`);
  expect(await booked.executeTakeFirst()).toEqual({ state: "final" });
});

test("a payment that waits for a second endpoint succeeds within five slots after it has caught up, before its slot is final", async () => {
  const [one, two] = await Promise.all([1, 2].map(() => startAlteringProxy({ target: solana.url })));
  if (!one || !two) throw new Error("there are no endpoints");
  const change = { finality: "confirmed" };
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [one.url, two.url], change });
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
  const slotAt = (commitment: "processed" | "confirmed" | "finalized") => solana.client.connection.getSlot(commitment);
  await solana.knobs.pause();
  while ((await slotAt("confirmed")) % 25 !== 2) await solana.knobs.jump(1);
  await fixture.submit();
  const behind = await slotAt("processed");
  two.alter((method, _params, result) =>
    method === "getSignatureStatuses"
      ? { context: { slot: behind - 1 }, value: (result as InContext).value.map(() => null) }
      : result,
  );
  await solana.knobs.jump(1);
  await fixture.watch();
  const transfer = async () => (await fixture.transfers())[0]?.state;
  expect(await transfer()).toBe("included");
  two.alter(undefined);
  while ((await slotAt("confirmed")) % 5 !== 0) await solana.knobs.jump(1);
  const [transaction] = (await fixture.transactions()).slice(-1);
  expect(await slotAt("finalized")).toBeLessThan(transaction?.block_number ?? 0);
  await fixture.watch();
  expect([await transfer(), (await fixture.status(paymentId)).state]).toEqual(["confirmed", "succeeded"]);
  await solana.knobs.resume();
});

test("a payout is neither declared expired nor signed again while a lagging endpoint reports an older nonce", async () => {
  const [one, two] = await Promise.all([1, 2].map(() => startAlteringProxy({ target: solana.url })));
  if (!one || !two) throw new Error("there are no endpoints");
  const fixture = await makeSolanaMerchantFixture(solana, {
    rpcUrls: [one.url, two.url],
    change: { nonceAccounts: 1 },
  });
  const isPaid = async (paymentId: string) => (await fixture.settlementOf(paymentId)).state === "paid";
  const settle = async (paymentId: string) => {
    expect(await fixture.settle((await fixture.settlementOf(paymentId)).id)).toEqual(["begun"]);
    await fixture.submit();
  };
  const [first, second] = [
    await fixture.pay(await fundSolanaBuyer(solana)),
    await fixture.pay(await fundSolanaBuyer(solana)),
  ];
  // The finalized nonce account as it was before the first payout used the nonce.
  let before: unknown;
  const isOfNonce = (method: string, params: unknown[]) =>
    method === "getMultipleAccounts" &&
    (params[0] as string[]).length === 1 &&
    (params[1] as { commitment?: string }).commitment === "finalized";
  one.alter((method, params, result) => {
    if (isOfNonce(method, params)) before ??= result;
    return result;
  });
  await solana.knobs.drop("all");
  await settle(first);
  await fixture.watchUntil(async () => before !== undefined);
  await solana.knobs.drop(0);
  const payouts = async () => (await fixture.transactions()).filter(({ nonce_account }) => nonce_account !== null);
  await fixture.watchUntil(async () => (await isPaid(first)) && (await payouts())[0]?.state === "final");

  await solana.knobs.drop("all");
  await settle(second);
  one.alter((method, params, result) => (isOfNonce(method, params) ? before : result));
  const { final_number: from } = await fixture.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
  const isFinalPast = async (slots: number) =>
    (await fixture.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow()).final_number > from + slots;
  await fixture.watchUntil(() => isFinalPast(20));
  // The watcher broadcasts it again after two seconds.
  const inFlight = expect.stringMatching(/^(signed|broadcast|accepted)$/);
  expect((await payouts()).map(({ state }) => state)).toEqual(["final", inFlight]);

  one.alter(undefined);
  await solana.knobs.drop(0);
  await fixture.watchUntil(() => isPaid(second));
  expect(await tokenBalance(solana, fixture.destination)).toBe(2_000_000n);
});

test("a transaction with a newer blockhash does not expire early when a lagging endpoint reports an old last height", async () => {
  const [one, two] = await Promise.all([1, 2].map(() => startAlteringProxy({ target: solana.url })));
  if (!one || !two) throw new Error("there are no endpoints");
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [one.url, two.url] });
  const { connection } = solana.client;
  const old = await connection.getLatestBlockhashAndContext("confirmed");
  await solana.knobs.jump(100);
  const paymentId = await fixture.create();
  const attemptId = await fixture.attempt(paymentId, await fundSolanaBuyer(solana));
  const { lastValidBlockHeight } = await connection.getLatestBlockhash("finalized");
  one.alter((method, _params, result) => (method === "getLatestBlockhash" ? old : result));
  await fixture.verify(attemptId);
  const [transfer] = await fixture.transfers();
  expect(transfer?.state).toBe("ready");
  expect(Number(transfer?.last_valid_height)).toBeGreaterThanOrEqual(lastValidBlockHeight);
});
