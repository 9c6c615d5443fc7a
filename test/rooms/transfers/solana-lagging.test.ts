import { expect, test } from "vitest";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { fundSolanaBuyer, startTestSolana } from "../../support/solana.ts";
import { makeSolanaTill } from "../../support/solana-till.ts";

const solana = await startTestSolana({ own: true });

type InContext = { context: { slot: number }; value: unknown[] };

test("a slot is called booked only when an endpoint that has come to it has told what became of everything there", async () => {
  const [behind, ahead] = await Promise.all([1, 2].map(() => startAlteringProxy({ target: solana.url })));
  if (!behind || !ahead) throw new Error("there are no endpoints");
  const till = await makeSolanaTill(solana, { rpcUrls: [behind.url, ahead.url] });
  await till.pay(await fundSolanaBuyer(solana));
  const paymentId = await till.create();
  await till.verify(await till.attempt(paymentId, await fundSolanaBuyer(solana)));
  // Statuses come from a node that has seen no slot since; everything else is told as it is.
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
  for (let turns = 0; turns < 10; turns += 1) await till.watch();
  expect(await finalNumber()).toBeLessThan(await slotOf());

  behind.alter(undefined);
  await till.watchUntil(async () => (await finalNumber()) >= (await slotOf()));
  const booked = await till.db
    .selectFrom("transaction")
    .select("state")
    .where("hash", "=", transaction?.hash ?? "");
  expect(await booked.executeTakeFirst()).toEqual({ state: "final" });
});
