import { sql } from "kysely";
import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { fundBuyer, networksFor, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { createDatabase } from "../../../support/test-database.ts";

const DEPTH = 3;
const DEPOSIT = 2_000_000n;

/** Sends a stranger's deposit to the treasury, and relays a payment in the next block. Neither is final yet. */
async function payBesideStranger() {
  const chain = await startChain();
  const second = await startAlteringProxy({ target: chain.url });
  const [usdc] = (await networksFor(chain)).chains[0]?.assets ?? [];
  const databaseUrl = await createDatabase();
  const assets = [{ ...usdc, agreementThreshold: String(DEPOSIT) }];
  const change = { assets, finality: { blocks: DEPTH } };
  const fixture = await makeMerchantFixture(chain, { change, rpcUrls: [chain.url, second.url], databaseUrl });
  await fixture.watch();
  const { db } = fixture;
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
  const stranger = await fundBuyer(chain);
  const deposit = await sendUsdc(chain, stranger, chain.keys.treasury.address, DEPOSIT);
  await fixture.relay();
  return {
    ...{ fixture, databaseUrl, stranger, second },
    deposit: String(deposit),
    stateOf: async () => (await fixture.status(paymentId)).state,
    watchAtDepth: async () => {
      await chain.client.mine({ blocks: DEPTH });
      await fixture.watch();
    },
    exceptions: async () => {
      const entries = await db
        .selectFrom("ledger_entry")
        .select("amount")
        .where("account", "=", "exceptions")
        .execute();
      return entries.map(({ amount }) => amount);
    },
  };
}

test("one endpoint's malformed receipt of a stranger's deposit delays no payment", async () => {
  const { deposit, second: liar, stateOf, watchAtDepth, exceptions } = await payBesideStranger();
  liar.alter((method, [hash], result) =>
    method === "eth_getTransactionReceipt" && hash === deposit ? { ...(result as object), gasUsed: "zz" } : result,
  );
  await watchAtDepth();
  expect(await stateOf()).toBe("succeeded");
  await watchAtDepth();
  expect(await exceptions()).toEqual([]);
  liar.alter(undefined);
  await watchAtDepth();
  expect(await exceptions()).toEqual([-DEPOSIT]);
});

test("payments succeed before strangers' deposits are booked, which can be thousands", async () => {
  const { databaseUrl, fixture, stranger, stateOf, watchAtDepth, exceptions } = await payBesideStranger();
  await fixture.watch();
  const other = openDb(databaseUrl, { max: 1 });
  addCleanup(() => other.destroy());
  // A lock on the deposit's row stands for the time that thousands of them take.
  const { watching } = await other.transaction().execute(async (tx) => {
    await sql`select from observation where payer = ${stranger.address.toLowerCase()} for update`.execute(tx);
    const pass = watchAtDepth();
    await expect.poll(stateOf).toBe("succeeded");
    return { watching: pass };
  });
  await watching;
  expect(await exceptions()).toEqual([-DEPOSIT]);
});
