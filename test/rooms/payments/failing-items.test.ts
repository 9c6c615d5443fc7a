import { sql } from "kysely";
import { expect, test } from "vitest";
import { deliverDue } from "../../../payments/deliver.ts";
import { refundPayment } from "../../../payments/refund.ts";
import { fundBuyers, startChain } from "../../support/chain.ts";
import { makeHook } from "../../support/endpoint.ts";
import { fundSolanaBuyer, startTestSolana } from "../../support/solana.ts";
import { makeSolanaTill } from "../../support/solana-till.ts";
import { good, makeTill, type Till } from "../../support/till.ts";

const chain = await startChain();

/** Makes Postgres refuse writes of a table's rows for which a condition on the new row holds. */
async function refuseRows({ db }: Pick<Till, "db">, table: string, when: string): Promise<void> {
  for (const statement of [
    `create or replace function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`,
    `create trigger refuse before insert or update on ${table} for each row when (${when}) execute function refuse()`,
  ])
    await sql.raw(statement).execute(db);
}

test("a transfer whose own trouble cannot be written down is held with another one, and those beside it go", async () => {
  const till = await makeTill(chain);
  const paymentIds: string[] = [];
  for (const buyer of await fundBuyers(chain, 3)) {
    const paymentId = await till.create();
    await till.verify(await till.attempt(paymentId, buyer));
    paymentIds.push(paymentId);
    if (paymentIds.length === 1) await chain.client.setCode({ address: buyer.address, bytecode: "0xfe" });
  }
  await refuseRows(
    till,
    "transfer",
    "new.last_trouble is not null and new.last_trouble not like 'it cannot be processed%'",
  );
  await till.relay();
  await till.watch();
  const [first, ...others] = await Promise.all(paymentIds.map(till.status));
  expect(first?.state).toBe("processing");
  expect(others.map(({ state }) => state)).toEqual(["succeeded", "succeeded"]);
  const [held] = await till.transfers();
  expect(held).toMatchObject({ state: "ready", last_trouble: "it cannot be processed: refused" });
  expect(held?.hold_until).not.toBeNull();
});

test("a refund that cannot begin keeps no other one from beginning, and those are enqueued", async () => {
  const till = await makeTill(chain);
  const refundIds: string[] = [];
  for (const buyer of await fundBuyers(chain, 3)) {
    const paymentId = await till.pay(buyer);
    refundIds.push(good(await refundPayment(till.deps, { paymentId, mode: "live" })).refundId);
  }
  await refuseRows(till, "transfer", `new.refund_id = '${refundIds[0]}'`);
  till.rung.splice(0);
  await expect(till.refund(...refundIds)).rejects.toThrow("refused");
  const rows = await till.db.selectFrom("refund").select(["id", "state"]).execute();
  expect(refundIds.map((id) => rows.find((row) => row.id === id)?.state)).toEqual(["due", "paying", "paying"]);
  expect(till.rung.map(({ queue }) => queue)).toEqual(["relay-permit"]);
});

test("a webhook event that we fail to send is tried again later, and the others of its endpoint are delivered", async () => {
  const { till, endpoint, id: endpointId, deliveries } = await makeHook(chain);
  const [poison] = [await till.create(), await till.create(), await till.create()];
  const outward: typeof till.deps.outward = (request) => {
    if (request.body?.includes(poison ?? "")) throw new Error("a bug of ours");
    return till.deps.outward(request);
  };
  const { signal } = new AbortController();
  expect(await deliverDue({ ...till.deps, outward }, { endpointId, signal })).toBe("done");
  expect(endpoint.arrivals).toHaveLength(2);
  const failed = (await deliveries()).filter(({ payment_id }) => payment_id === poison);
  expect(failed).toMatchObject([{ state: "pending", tries: 1, last_outcome: "internal error" }]);
});

test("a buyer's Solana transaction that cannot be signed is held, and the others and the payouts go", async () => {
  const solana = await startTestSolana();
  const till = await makeSolanaTill(solana);
  const owed = await till.pay(await fundSolanaBuyer(solana));
  expect(await till.settle((await till.settlementOf(owed)).id)).toEqual(["begun"]);
  const paymentIds: string[] = [];
  for (let count = 0; count < 2; count += 1) {
    const paymentId = await till.create();
    await till.verify(await till.attempt(paymentId, await fundSolanaBuyer(solana)));
    paymentIds.push(paymentId);
  }
  const [bad, honest] = paymentIds as [string, string];
  await till.db
    .updateTable("transfer")
    .set({ signature: Buffer.of(0) })
    .where("payment_id", "=", bad)
    .execute();
  await till.submit();
  const stateOf = async (column: "payment_id" | "settlement_id", id: string) =>
    (await till.transfers()).find((row) => row[column] === id);
  expect(await stateOf("payment_id", bad)).toMatchObject({
    state: "ready",
    last_trouble: "the transaction's fee payer is not one of our relayers",
    hold_until: expect.any(Date),
  });
  expect(await stateOf("payment_id", honest)).toMatchObject({ state: "carried" });
  expect(await stateOf("settlement_id", (await till.settlementOf(owed)).id)).toMatchObject({ state: "carried" });
});

test("payouts on Solana go while screening cannot say whether a buyer may be served", async () => {
  const solana = await startTestSolana();
  const till = await makeSolanaTill(solana);
  const owed = await till.pay(await fundSolanaBuyer(solana));
  expect(await till.settle((await till.settlementOf(owed)).id)).toEqual(["begun"]);
  await till.verify(await till.attempt(await till.create(), await fundSolanaBuyer(solana)));
  till.brokenList.on = true;
  await expect(till.submit()).rejects.toMatchObject({ code: "screening_down" });
  const states = (await till.transfers()).map(({ purpose, state }) => [purpose, state]);
  expect(states).toEqual([
    ["payment", "confirmed"],
    ["settlement", "carried"],
    ["payment", "ready"],
  ]);
});
