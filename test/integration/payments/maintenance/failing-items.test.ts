import { sql } from "kysely";
import { expect, test } from "vitest";
import { ChainError } from "../../../../chains/errors.ts";
import { getEvmChain } from "../../../../chains/open-chains.ts";
import { beginRefunds } from "../../../../payments/payouts/begin-refunds.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { deliverDue } from "../../../../payments/webhooks/deliver-events.ts";
import { fundBuyers, startChain } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";
import { makeWebhookFixture } from "../../../support/webhook-endpoint.ts";

const chain = await startChain();

/** Makes Postgres refuse writes to a table when a condition on the new row holds. */
async function refuseRows({ db }: Pick<MerchantFixture, "db">, table: string, when: string): Promise<void> {
  for (const statement of [
    `create or replace function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`,
    `create trigger refuse before insert or update on ${table} for each row when (${when}) execute function refuse()`,
  ])
    await sql.raw(statement).execute(db);
}

test("a transfer whose error cannot be stored is held with another error, and the other transfers of its batch are sent", async () => {
  const fixture = await makeMerchantFixture(chain);
  const paymentIds: string[] = [];
  for (const buyer of await fundBuyers(chain, 3)) {
    const paymentId = await fixture.create();
    await fixture.verify(await fixture.attempt(paymentId, buyer));
    paymentIds.push(paymentId);
    if (paymentIds.length === 1) await chain.client.setCode({ address: buyer.address, bytecode: "0xfe" });
  }
  await refuseRows(
    fixture,
    "transfer",
    "new.last_error is not null and new.last_error not like 'it cannot be processed%'",
  );
  await fixture.relay();
  await fixture.watch();
  const [first, ...others] = await Promise.all(paymentIds.map(fixture.status));
  expect(first?.state).toBe("processing");
  expect(others.map(({ state }) => state)).toEqual(["succeeded", "succeeded"]);
  const [held] = await fixture.transfers();
  expect(held).toMatchObject({ state: "ready", last_error: "it cannot be processed: refused" });
  expect(held?.hold_until).not.toBeNull();
});

test("a refund that cannot begin does not stop the other refunds from beginning and being enqueued", async () => {
  const fixture = await makeMerchantFixture(chain);
  const refundIds: string[] = [];
  for (const buyer of await fundBuyers(chain, 3)) {
    const paymentId = await fixture.pay(buyer);
    refundIds.push(unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live" })).refundId);
  }
  await refuseRows(fixture, "transfer", `new.refund_id = '${refundIds[0]}'`);
  fixture.enqueued.splice(0);
  await expect(fixture.refund(...refundIds)).rejects.toThrow("refused");
  const rows = await fixture.db.selectFrom("refund").select(["id", "state"]).execute();
  expect(refundIds.map((id) => rows.find((row) => row.id === id)?.state)).toEqual(["due", "paying", "paying"]);
  expect(fixture.enqueued.map(({ queue }) => queue)).toEqual(["relay-transfers"]);
});

test("a settlement that cannot begin does not stop the merchant's other settlements from beginning and being enqueued", async () => {
  const fixture = await makeMerchantFixture(chain);
  const settlementIds: string[] = [];
  for (const buyer of await fundBuyers(chain, 3))
    settlementIds.push((await fixture.settlementOf(await fixture.pay(buyer))).id);
  await refuseRows(fixture, "transfer", `new.settlement_id = '${settlementIds[0]}'`);
  fixture.enqueued.splice(0);
  await expect(fixture.settle(...settlementIds)).rejects.toThrow("refused");
  const rows = await fixture.db.selectFrom("settlement").select(["id", "state"]).execute();
  expect(settlementIds.map((id) => rows.find((row) => row.id === id)?.state)).toEqual(["due", "paying", "paying"]);
  expect(fixture.enqueued.map(({ queue }) => queue)).toEqual(["relay-transfers"]);
});

test("while no endpoint of a chain answers, one refund waits for them and the others of its batch fail at once", async () => {
  const fixture = await makeMerchantFixture(chain);
  const refundIds: string[] = [];
  for (const buyer of await fundBuyers(chain, 3)) {
    const paymentId = await fixture.pay(buyer);
    refundIds.push(unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live" })).refundId);
  }
  let asked = 0;
  const rpc = () => {
    asked += 1;
    return Promise.reject(new ChainError("rpc_unreachable"));
  };
  const hanging = {
    ...getEvmChain(fixture.deps.chains, chain.id),
    rpc,
    listEndpointsInOrder: () => [{ name: "a", rpc }],
  };
  const chains = new Map([[chain.id, hanging]]);
  const outcomes = await beginRefunds({ ...fixture.deps, chains }, refundIds);
  const failed = { error: expect.objectContaining({ code: "rpc_unreachable" }) };
  expect(outcomes).toEqual([failed, failed, failed]);
  expect(asked).toBe(1);
  expect(await beginRefunds(fixture.deps, refundIds)).toEqual(["begun", "begun", "begun"]);
});

test("a webhook event that fails with an internal error is retried later, and the other events of its endpoint are delivered", async () => {
  const { fixture, endpoint, id: endpointId, deliveries } = await makeWebhookFixture(chain);
  const [poison] = [await fixture.create(), await fixture.create(), await fixture.create()];
  const safeFetch: typeof fixture.deps.safeFetch = (request) => {
    if (request.body?.includes(poison ?? "")) throw new Error("a bug of ours");
    return fixture.deps.safeFetch(request);
  };
  const { signal } = new AbortController();
  expect(await deliverDue({ ...fixture.deps, safeFetch }, { endpointId, signal })).toBe("done");
  expect(endpoint.arrivals).toHaveLength(2);
  const failed = (await deliveries()).filter(({ payment_id }) => payment_id === poison);
  expect(failed).toMatchObject([{ state: "pending", attempts_made: 1, last_outcome: "internal error" }]);
  const { values } = await fixture.deps.metrics.webhookDeliveries.get();
  expect(values).toContainEqual({ labels: { outcome: "internal" }, value: 1 });
});

test("a buyer's Solana transaction that cannot be signed is held, and other payments and payouts are sent", async () => {
  const solana = await startTestSolana();
  const fixture = await makeSolanaMerchantFixture(solana);
  const owed = await fixture.pay(await fundSolanaBuyer(solana));
  expect(await fixture.settle((await fixture.settlementOf(owed)).id)).toEqual(["begun"]);
  const paymentIds: string[] = [];
  for (let count = 0; count < 2; count += 1) {
    const paymentId = await fixture.create();
    await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
    paymentIds.push(paymentId);
  }
  const [bad, honest] = paymentIds as [string, string];
  await fixture.db
    .updateTable("transfer")
    .set({ signature: Buffer.of(0) })
    .where("payment_id", "=", bad)
    .execute();
  await fixture.submit();
  const findTransfer = async (column: "payment_id" | "settlement_id", id: string) =>
    (await fixture.transfers()).find((row) => row[column] === id);
  expect(await findTransfer("payment_id", bad)).toMatchObject({
    state: "ready",
    last_error: "the transaction's fee payer is not one of our relayers",
    hold_until: expect.any(Date),
  });
  expect(await findTransfer("payment_id", honest)).toMatchObject({ state: "assigned" });
  expect(await findTransfer("settlement_id", (await fixture.settlementOf(owed)).id)).toMatchObject({
    state: "assigned",
  });
});

test("Solana payouts are sent while the screening of buyers fails", async () => {
  const solana = await startTestSolana();
  const fixture = await makeSolanaMerchantFixture(solana);
  const owed = await fixture.pay(await fundSolanaBuyer(solana));
  expect(await fixture.settle((await fixture.settlementOf(owed)).id)).toEqual(["begun"]);
  await fixture.verify(await fixture.attempt(await fixture.create(), await fundSolanaBuyer(solana)));
  fixture.brokenList.on = true;
  await expect(fixture.submit()).rejects.toMatchObject({ code: "screening_down" });
  const states = (await fixture.transfers()).map(({ purpose, state }) => [purpose, state]);
  expect(states).toEqual([
    ["payment", "confirmed"],
    ["settlement", "assigned"],
    ["payment", "ready"],
  ]);
});
