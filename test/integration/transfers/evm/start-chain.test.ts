import { expect, test } from "vitest";
import { findUnreadEpoch } from "../../../../db/epoch.ts";
import { type Alter, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { mine, startChain } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { createDatabase } from "../../../support/test-database.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const chain = await startChain();
await mine(chain, 10);
/** The last block before the time from which commits are lost, less the hour by which a chain's clock may be behind. */
const lastBefore = Number(await chain.client.getBlockNumber());
const lostSince = `'${new Date(Date.now() + 3_600_000 + 60_000).toISOString()}'::timestamptz`;
await chain.client.setNextBlockTimestamp({ timestamp: BigInt(Math.floor(Date.now() / 1_000) + 120) });
await mine(chain, 100);
const beforeHead = Number(await chain.client.getBlockNumber()) - 32;

const restored = "identity = '7/00000001/1'";
const later = `counted_at = ${lostSince} + interval '1 day'`;

test.each([
  ["in a database that was never restored", "count = count", beforeHead],
  ["at the start after a restore", `${restored}, counted_at = ${lostSince}`, lastBefore],
  ["six days after a restore", `began_at = now() - interval '6 days', lost_since = ${lostSince}`, lastBefore],
  ["eight days after a restore", `began_at = now() - interval '8 days', lost_since = ${lostSince}`, beforeHead],
  [
    "after a second restore within a week",
    `began_at = now() - interval '6 days', lost_since = ${lostSince}, ${restored}, ${later}`,
    lastBefore,
  ],
  [
    "after a second restore later than a week",
    `began_at = now() - interval '8 days', lost_since = 'epoch', ${restored}, counted_at = ${lostSince}`,
    lastBefore,
  ],
])("the first watch of a chain %s starts at the block that precedes everything unread", async (_when, state, start) => {
  const databaseUrl = await createDatabase();
  await execute(databaseUrl, `update database_epoch set ${state}`);
  const { deps, db, watch } = await makeTransfersFixture(chain, { databaseUrl });
  const cursor = await db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
  expect(cursor.number).toBe(start);
  const isRestored = state !== "count = count";
  expect((await findUnreadEpoch(deps.db, chain.id)) !== undefined).toBe(isRestored);
  await watch();
  expect(await findUnreadEpoch(deps.db, chain.id)).toBeUndefined();
});

test.each<[string, Alter]>([
  ["the nonces of accounts", (method, _params, result) => (method === "eth_getTransactionCount" ? "zz" : result)],
  ["the height of the newest block", (method, _params, result) => (method === "eth_blockNumber" ? "zz" : result)],
  [
    "blocks",
    (method, _params, result) =>
      method === "eth_getBlockByNumber" ? { ...(result as object), timestamp: "zz" } : result,
  ],
])("a new chain is served by a process that starts while one of two endpoints garbles %s", async (_what, alter) => {
  const liar = await startAlteringProxy({ target: chain.url });
  liar.alter(alter);
  const { db } = await makeTransfersFixture(chain, { rpcUrls: [liar.url, chain.url] });
  expect(await db.selectFrom("chain_cursor").select("number").execute()).toEqual([{ number: beforeHead }]);
  expect(await db.selectFrom("lane").select("next_nonce").distinct().execute()).toEqual([{ next_nonce: 0 }]);
});
