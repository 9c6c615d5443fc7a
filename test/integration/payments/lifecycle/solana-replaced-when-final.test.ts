import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, sendTokens, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana();

/** Creates a payment with an accepted transfer that no relayer has sent, and pays it with another account's own transaction. */
async function payBeside(rpcUrls?: readonly string[]) {
  const fixture = await makeSolanaMerchantFixture(solana, { ...(rpcUrls ? { rpcUrls } : {}) });
  const paymentId = await fixture.create();
  const buyer = await fundSolanaBuyer(solana);
  const [option] = await fixture.offer(paymentId, buyer);
  const { authorization_nonce: memo } = await fixture.db
    .selectFrom("payment_option")
    .select("authorization_nonce")
    .where("id", "=", option?.id ?? "")
    .executeTakeFirstOrThrow();
  await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
  expect((await fixture.status(paymentId)).state).toBe("processing");
  const pay = () => sendTokens(solana, { from: buyer, to: fixture.keys.treasury.address, amount: 1_000_000n, memo });
  const statesOf = async () => (await fixture.transfers()).map(({ state }) => state).toSorted();
  return { fixture, paymentId, pay, statesOf };
}

test("money with a payment's memo pays it although a transfer was accepted, which was never sent", async () => {
  const { fixture, paymentId, pay, statesOf } = await payBeside();
  await pay();
  await fixture.watchUntilState(paymentId, "succeeded");
  expect(await statesOf()).toEqual(["confirmed", "ended"]);
  expect(
    await fixture.db.selectFrom("ledger_entry").select("amount").where("account", "=", "exceptions").execute(),
  ).toEqual([]);
});

test("money that one endpoint denies neither pays nor ends an accepted transfer, also when its blockhash expires", async () => {
  const liar = await startAlteringProxy({ target: solana.url });
  const { fixture, paymentId, pay, statesOf } = await payBeside([solana.url, liar.url]);
  liar.alter((method, _params, result) => {
    if (method !== "getSignatureStatuses") return result;
    const { context, value } = result as { context: unknown; value: unknown[] };
    return { context, value: value.map(() => null) };
  });
  await pay();
  const observed = () => fixture.db.selectFrom("observation").select(["transfer_id", "booked"]).execute();
  await fixture.watchUntil(async () => (await observed()).length === 1);
  await fixture.db.updateTable("transfer").set({ last_valid_height: 1 }).execute();
  for (let pass = 0; pass < 10; pass += 1) await fixture.watch(new AbortController().signal);
  expect(await observed()).toEqual([{ transfer_id: null, booked: false }]);
  expect(await statesOf()).toEqual(["ready"]);
  liar.alter(undefined);
  await fixture.watchUntilState(paymentId, "succeeded");
  expect(await statesOf()).toEqual(["confirmed", "ended"]);
});
