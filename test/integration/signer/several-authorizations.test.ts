import type { Hex, RpcTransactionReceipt } from "viem";
import { expect, test } from "vitest";
import { AUTHORIZATION_USED_TOPIC } from "../../../chains/evm/abi.ts";
import { listExceptions } from "../../../payments/accounting/resolve-exceptions.ts";
import { accumulatePayouts } from "../../support/accumulate-payouts.ts";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain, usdcBalance } from "../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { startTestSigner } from "../../support/test-signer.ts";
import { useAuthorizations, useForNothing, withOwnNonce } from "../../support/use-authorizations.ts";

// A payer can use several authorizations in one transaction, for any amounts and receivers.

test("a payer who uses a payment's nonce for nothing, and another one for its amount, holds up no payout", async () => {
  const chain = await startChain();
  const { signer } = await startTestSigner(chain);
  const fixture = await makeMerchantFixture(chain, { signer });
  await accumulatePayouts(fixture, { ms: 60_000 });
  const honest = await fixture.pay(await fundBuyer(chain), 500n);
  const payer = await fundBuyer(chain);
  const unpaid = await fixture.create(100n);
  await fixture.verify(await fixture.attempt(unpaid, payer));
  const transfer = (await fixture.transfers()).find(({ payment_id }) => payment_id === unpaid);
  if (!transfer) throw new Error("there is no transfer");
  await useAuthorizations(chain, fixture, { payer, transfers: [useForNothing(transfer), withOwnNonce(transfer)] });
  await fixture.watch();
  expect((await fixture.status(unpaid)).state).toBe("processing");
  expect(await listExceptions(fixture.deps, 10)).toMatchObject([{ amount: transfer.amount, paymentId: null }]);

  fixture.clock.advance(3_600_000);
  await chain.client.increaseTime({ seconds: 7_200 });
  await mine(chain, 2);
  await fixture.watch();
  expect((await fixture.status(unpaid)).state).toBe("expired");
  expect(await fixture.settle((await fixture.settlementOf(honest)).id)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  expect(await usdcBalance(chain, fixture.destination)).toBe(5_000_000n);
});

/** Two merchants' payments by one payer, of which one transaction uses both nonces and moves the amount of the first one only. */
async function payOneOfTwo() {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const signing = await startTestSigner(chain, { rpcUrls: [proxy.url] });
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
  const { databaseUrl, clock } = fixture;
  const other = await makeMerchantFixture(chain, { databaseUrl, clock, signer: signing.signer });
  const payer = await fundBuyer(chain);
  const [paid, unpaid] = [await fixture.create(100n), await other.create(100n)];
  await fixture.verify(await fixture.attempt(paid, payer), await other.attempt(unpaid, payer));
  const transferOf = async (id: string) => {
    const row = (await fixture.transfers()).find(({ payment_id }) => payment_id === id);
    if (!row) throw new Error("there is no transfer");
    return row;
  };
  const [made, unmade] = [await transferOf(paid), await transferOf(unpaid)];
  const transfers = [useForNothing(unmade), made];
  await useAuthorizations(chain, fixture, { payer, transfers });
  await fixture.watch();
  expect((await fixture.status(paid)).state).toBe("succeeded");
  expect((await other.status(unpaid)).state).toBe("processing");
  const { tx_hash: txHash, log_index: logIndex } = await fixture.db
    .selectFrom("observation")
    .select(["tx_hash", "log_index"])
    .where("transfer_id", "=", made.id)
    .executeTakeFirstOrThrow();
  const place = { asset: chain.asset, txHash, logIndex };
  return {
    ...{ chain, proxy, signing, amount: made.amount, unmade },
    own: { ...place, merchantId: fixture.merchantId, paymentId: paid },
    foreign: { ...place, merchantId: other.merchantId, paymentId: unpaid },
    deposits: () => signing.store.prepare("select payment_id, amount from deposit").all(),
  };
}

test("a movement counts only for the payment whose authorization made it, however often two payments claim it at the same time", async () => {
  const { signing, own, foreign, deposits, amount } = await payOneOfTwo();
  const claims = Array.from({ length: 8 }, (_, index) => (index % 2 === 0 ? foreign : own));
  const results = await Promise.all([
    ...claims.map((claim) => signing.signer.claimDeposits([claim])),
    signing.signer.claimDeposits([foreign, own]),
  ]);
  const refused = { ok: false, reason: "deposit_mismatch" };
  for (const [index, [result]] of results.entries())
    expect(result).toMatchObject(index % 2 === 0 ? refused : { ok: true });
  expect(results.at(-1)?.[1]).toMatchObject({ ok: true });
  expect(deposits()).toEqual([{ payment_id: own.paymentId, amount: String(amount) }]);
});

test("a movement counts once although an endpoint shows it to two payments at the same time with the nonce of each", async () => {
  const { proxy, signing, own, foreign, deposits, unmade } = await payOneOfTwo();
  // The endpoint names the second payment's nonce in every second receipt.
  let reading = 0;
  proxy.alter((method, _params, result) => {
    if (method !== "eth_getTransactionReceipt" || reading++ % 2 === 0) return result;
    const receipt = result as RpcTransactionReceipt;
    const logs = receipt.logs.map((log) =>
      log.topics[0] === AUTHORIZATION_USED_TOPIC
        ? { ...log, topics: [...log.topics.slice(0, 2), unmade.authorization_nonce as Hex] }
        : log,
    );
    return { ...receipt, logs };
  });
  const results = (await Promise.all([own, foreign].map((claim) => signing.signer.claimDeposits([claim])))).flat();
  expect(reading, "both claims read the chain before one is recorded").toBe(2);
  expect(results.filter(({ ok }) => ok)).toHaveLength(1);
  expect(results.find(({ ok }) => !ok)).toMatchObject({ detail: "the log is recorded for another payment" });
  expect(deposits()).toHaveLength(1);
});
