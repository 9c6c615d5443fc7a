import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { newSolanaKey } from "../../../../local/solana-client.ts";
import { fundTokens, makeMint } from "../../../../local/spl-tokens.ts";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { execute } from "../../../support/execute-sql.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { waitFinalized } from "../../../support/solana-history.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { copyDatabase, createDatabase } from "../../../support/test-database.ts";
import { sendDust, startTestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

const solana = await startTestSolana({ own: true, slotMs: 100 });

/** Waits until the cluster's final slot is above this one. */
const waitForSlot = (slot: number) =>
  waitFor(async () => (await solana.client.connection.getSlot("finalized")) > slot, { within: 60_000 });

/** Makes a database the restored one of a moment. A chain's clock may be an hour behind the database's. */
const restoreTo = (databaseUrl: string, at: Date) =>
  execute(
    databaseUrl,
    `update database_epoch set identity = '7/00000001/1',
      counted_at = '${new Date(at.getTime() + 3_600_000).toISOString()}'::timestamptz`,
  );

test("a database restored to before a token was added finds what was paid in it since, and signs nothing before", async () => {
  const added = await makeMint(solana.client);
  const first = await makeSolanaMerchantFixture(solana, { settles: [solana.mint, added] });
  const { clock, databaseUrl } = first;
  await first.db.destroy();
  const backup = await copyDatabase(databaseUrl);
  const more = { of: first, clock, mints: [added] };
  const lost = await makeSolanaMerchantFixture(solana, { ...more, databaseUrl });
  await waitFinalized(solana, ...(await sendDust({ ...solana, mint: added }, lost.keys.treasury.address, 2)));
  // Block times are whole seconds.
  await delay(1_100);
  const at = new Date();
  await delay(1_100);
  const buyer = newSolanaKey();
  await fundTokens(solana.client, added, [buyer.address], 1_000_000_000n);
  await lost.pay(buyer, 100n);
  await waitFinalized(solana, ...(await lost.transactions()).map(({ hash }) => hash));
  await lost.db.destroy();
  // A listing ends some slots before the newest final one, and a cursor beyond that is moved back.
  const paidBy = await solana.client.connection.getSlot("finalized");
  await waitForSlot(paidBy + 20);

  await restoreTo(backup, at);
  // What only one endpoint has listed is listed again from the restored moment, wherever the first listing has begun.
  const rpcUrls = [solana.url, solana.url];
  const restored = await makeSolanaMerchantFixture(solana, { ...more, databaseUrl: backup, rpcUrls });
  await restored.watchOnly();
  expect(await isCaughtUp(restored.deps, solana.id)).toBe(false);
  await restored.watchUntil(() => isCaughtUp(restored.deps, solana.id));
  const listFound = async () => (await listExceptions(restored.deps, 10)).map(({ kind, amount }) => [kind, amount]);
  await restored.watchUntil(async () => (await listFound()).length > 0, 20_000);
  expect(await listFound()).toEqual([["unknown", 1_000_000n]]);
});

test("an account without a cursor counts as read only by an endpoint whose history begins before the lost commits", async () => {
  const poor = await startAlteringProxy({ target: solana.url });
  poor.alter((method, _params, result) => {
    if (method === "getFirstAvailableBlock") return Number.MAX_SAFE_INTEGER;
    return method === "getSignaturesForAddress" ? [] : result;
  });
  // An empty list ends a listing anyway for a minute of slots after the last one.
  await waitForSlot(200);
  const databaseUrl = await createDatabase();
  await restoreTo(databaseUrl, new Date(0));
  const fixture = await makeSolanaMerchantFixture(solana, { databaseUrl, rpcUrls: [poor.url, poor.url] });
  await expect(fixture.readHistory()).rejects.toMatchObject({ code: "history_short" });
  poor.alter(undefined);
  await fixture.watchUntil(() => isCaughtUp(fixture.deps, solana.id));
});

test("an account without a cursor needs no endpoint with a history from the first slot when no endpoint knows the time of the restore", async () => {
  const [first, restored, known] = [20, 140, 160];
  const own = await startAlteringProxy({ target: solana.url });
  own.alter((method, [slot], result) => {
    if (method === "getFirstAvailableBlock") return first;
    // Nodes answer with the time of slot 0 however little they keep.
    return method === "getBlockTime" && Number(slot) > 0 && Number(slot) < known ? null : result;
  });
  const { connection } = solana.client;
  await waitFor(async () => (await connection.getSlot("finalized")) > 200, { within: 60_000 });
  const databaseUrl = await createDatabase();
  await restoreTo(databaseUrl, new Date(((await connection.getBlockTime(restored)) ?? 0) * 1_000));
  const fixture = await makeSolanaMerchantFixture(solana, { databaseUrl, rpcUrls: [own.url, own.url] });
  const cursor = await fixture.db.selectFrom("account_cursor").select("listed_slot").executeTakeFirstOrThrow();
  expect(cursor.listed_slot).toBeGreaterThanOrEqual(first);
  expect(cursor.listed_slot).toBeLessThanOrEqual(restored);
  await fixture.watchUntil(() => isCaughtUp(fixture.deps, solana.id));
});

test("the first reconciliation waits until what a start has paid for accounts is booked", async () => {
  const fixture = await makeSolanaMerchantFixture(solana);
  const hashes = (await fixture.transactions()).map(({ hash }) => hash);
  expect(hashes).not.toEqual([]);
  await waitFinalized(solana, ...hashes);
  const { value } = await solana.client.connection.getSignatureStatuses(hashes, { searchTransactionHistory: true });
  const first = Math.min(...value.map((status) => status?.slot ?? 0));
  const cursor = await fixture.db.selectFrom("chain_cursor").select("final_number").executeTakeFirstOrThrow();
  expect(cursor.final_number).toBeLessThan(first);

  unwrap(await fixture.reconcile());
  expect(unwrap(await fixture.reconcile()).map(({ difference }) => difference)).toEqual([0n, 0n]);
  const deposits = await fixture.db
    .selectFrom("ledger_group")
    .select("id")
    .where("kind", "=", "lane_deposit")
    .execute();
  expect(deposits).toHaveLength(1);
});
