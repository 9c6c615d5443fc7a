import { sql } from "kysely";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../support/solana.ts";
import { makeSolanaTill } from "../../support/solana-till.ts";

const solana = await startTestSolana({ own: true });

type InContext = { context: { slot: number }; value: unknown[] };

test("a slot counts as booked only when an endpoint that has reached it has reported every status up to it", async () => {
  const [behind, ahead] = await Promise.all([1, 2].map(() => startAlteringProxy({ target: solana.url })));
  if (!behind || !ahead) throw new Error("there are no endpoints");
  const till = await makeSolanaTill(solana, { rpcUrls: [behind.url, ahead.url] });
  await till.pay(await fundSolanaBuyer(solana));
  const paymentId = await till.create();
  await till.verify(await till.attempt(paymentId, await fundSolanaBuyer(solana)));
  // Statuses come from a node that has seen no slot since; all other results are unaltered.
  const stuckAt = await solana.client.connection.getSlot("processed");
  behind.alter((method, _params, result) =>
    method === "getSignatureStatuses"
      ? { context: { slot: stuckAt }, value: (result as InContext).value.map(() => null) }
      : result,
  );
  await till.submit();
  const [transaction] = (await till.transactions()).slice(-1);
  const landed = async () =>
    (await solana.client.connection.getSignatureStatus(transaction?.hash ?? "")).value?.confirmationStatus;
  await till.watchUntil(async () => (await landed()) === "finalized");
  const slotOf = async () =>
    (await solana.client.connection.getSignatureStatus(transaction?.hash ?? "")).value?.slot ?? 0;
  const finalNumber = async () =>
    (await till.db.selectFrom("chain_cursor").select("final_number").executeTakeFirstOrThrow()).final_number;
  for (let pass = 0; pass < 10; pass += 1) await till.watch();
  expect(await finalNumber()).toBeLessThan(await slotOf());

  behind.alter(undefined);
  await till.watchUntil(async () => (await finalNumber()) >= (await slotOf()));
  const booked = await till.db
    .selectFrom("transaction")
    .select("state")
    .where(sql<boolean>`hash = ${transaction?.hash}`);
  expect(await booked.executeTakeFirst()).toEqual({ state: "final" });
});

test("a payout is neither declared expired nor signed again while a lagging endpoint reports an older nonce", async () => {
  const [one, two] = await Promise.all([1, 2].map(() => startAlteringProxy({ target: solana.url })));
  if (!one || !two) throw new Error("there are no endpoints");
  const till = await makeSolanaTill(solana, { rpcUrls: [one.url, two.url], change: { nonceAccounts: 1 } });
  const isPaid = async (paymentId: string) => (await till.settlementOf(paymentId)).state === "paid";
  const settle = async (paymentId: string) => {
    expect(await till.settle((await till.settlementOf(paymentId)).id)).toEqual(["begun"]);
    await till.submit();
  };
  const [first, second] = [
    await till.pay(await fundSolanaBuyer(solana)),
    await till.pay(await fundSolanaBuyer(solana)),
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
  await till.watchUntil(async () => before !== undefined);
  await solana.knobs.drop(0);
  const payouts = async () => (await till.transactions()).filter(({ nonce_account }) => nonce_account !== null);
  await till.watchUntil(async () => (await isPaid(first)) && (await payouts())[0]?.state === "final");

  await solana.knobs.drop("all");
  await settle(second);
  one.alter((method, params, result) => (isOfNonce(method, params) ? before : result));
  const { final_number: from } = await till.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
  const isFinalPast = async (slots: number) =>
    (await till.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow()).final_number > from + slots;
  await till.watchUntil(() => isFinalPast(20));
  expect((await payouts()).map(({ state }) => state)).toEqual(["final", "accepted"]);

  one.alter(undefined);
  await solana.knobs.drop(0);
  await till.watchUntil(() => isPaid(second));
  expect(await tokenBalance(solana, till.destination)).toBe(2_000_000n);
});

test("a transaction with a newer blockhash does not expire early when a lagging endpoint reports an old last height", async () => {
  const [one, two] = await Promise.all([1, 2].map(() => startAlteringProxy({ target: solana.url })));
  if (!one || !two) throw new Error("there are no endpoints");
  const till = await makeSolanaTill(solana, { rpcUrls: [one.url, two.url] });
  const { connection } = solana.client;
  const old = await connection.getLatestBlockhashAndContext("confirmed");
  await solana.knobs.jump(100);
  const paymentId = await till.create();
  const attemptId = await till.attempt(paymentId, await fundSolanaBuyer(solana));
  const { lastValidBlockHeight } = await connection.getLatestBlockhash("finalized");
  one.alter((method, _params, result) => (method === "getLatestBlockhash" ? old : result));
  await till.verify(attemptId);
  const [transfer] = await till.transfers();
  expect(transfer?.state).toBe("ready");
  expect(Number(transfer?.valid_before)).toBeGreaterThanOrEqual(lastValidBlockHeight);
});
