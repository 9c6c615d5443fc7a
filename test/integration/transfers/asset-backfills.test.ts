import { sql } from "kysely";
import type { Hex } from "viem";
import { expect, test } from "vitest";
import { encodeTransfer } from "../../../chains/evm/eip3009.ts";
import { readEvmRow } from "../../../db/chain-families.ts";
import { ensureAccountCursor } from "../../../db/queries/account-cursors.ts";
import { beginBackfills } from "../../../db/queries/asset-backfills.ts";
import { newSolanaKey } from "../../../local/solana-client.ts";
import { listExceptions } from "../../../payments/accounting/resolve-exceptions.ts";
import { createBookingHandlers } from "../../../payments/lifecycle/book-transfers.ts";
import { expirePayment } from "../../../payments/lifecycle/expire-payment.ts";
import { toAuthorization } from "../../../transfers/evm/authorization-calls.ts";
import { startTransfers } from "../../../transfers/start-transfers.ts";
import { watchChain } from "../../../transfers/watch-pass.ts";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { fundBuyer, mine, networksFor, sendUsdc, startChain, type TestChain } from "../../support/evm-chain.ts";
import { isCaughtUp } from "../../support/is-caught-up.ts";
import { type MerchantFixture, makeMerchantFixture, signOption } from "../../support/merchant-fixture.ts";
import { makeSolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { createDatabase } from "../../support/test-database.ts";
import { makeDeps } from "../../support/test-deps.ts";
import { startTestSolana } from "../../support/test-solana.ts";
import { relayByThirdParty, waitUntilMined } from "../../support/transfers-fixture.ts";

const MINUTE = 60_000;

/** A watcher of the same deployment whose networks file has another asset instead. */
async function makeWatcherWithout(
  chain: TestChain,
  databaseUrl: string,
  clock: MerchantFixture["clock"],
  more: object = {},
) {
  const usdc = (await networksFor(chain)).chains[0]?.assets[0];
  const assets = [{ ...usdc, asset: `${chain.id}/erc20:0x${"99".repeat(20)}` }];
  const { deps } = await makeDeps(chain, { databaseUrl, clock, change: { ...more, assets } });
  const watch = async () => {
    await waitUntilMined(chain);
    await watchChain(deps, { chain: chain.id, signal: AbortSignal.abort(), handlers: createBookingHandlers(deps) });
  };
  return { deps, watch };
}

/** A payment of one minute that its buyer has signed; `relay` sends the signature as a third party. */
async function signPayment(chain: TestChain, fixture: MerchantFixture) {
  const id = await fixture.create(100n, { expiresAt: new Date(fixture.deps.now().getTime() + MINUTE) });
  const buyer = await fundBuyer(chain);
  const [option] = await fixture.offer(id, buyer);
  if (!option) throw new Error("there is no way to pay");
  const [signed] = await signOption(option, buyer);
  const rows = fixture.db.selectFrom("payment_option").selectAll().where("payment_id", "=", id);
  const row = await rows.executeTakeFirstOrThrow();
  const call = encodeTransfer(toAuthorization(readEvmRow(row)), signed?.data[0] as Hex);
  return { id, relay: () => relayByThirdParty(chain, call) };
}

/** A payment that its buyer has signed, and a watcher without its asset that has read the chain up to here. */
async function beginWithoutAsset(chain: TestChain, options: Parameters<typeof makeMerchantFixture>[1] = {}) {
  const fixture = await makeMerchantFixture(chain, options);
  await fixture.watch();
  const payment = await signPayment(chain, fixture);
  const without = await makeWatcherWithout(chain, fixture.databaseUrl, fixture.clock);
  await without.watch();
  return { fixture, without, ...payment };
}

/** Both clocks pass the deadline, and the block of the deadline is final. */
async function passDeadline(chain: TestChain, fixture: MerchantFixture): Promise<void> {
  fixture.clock.advance(3 * MINUTE);
  const timestamp = BigInt(Math.floor(fixture.clock.now().getTime() / 1_000));
  await chain.client.setNextBlockTimestamp({ timestamp });
  await mine(chain, 20);
}

test("a transfer that arrived while the networks file lacked its asset is found once the asset is back, before its payment expires", async () => {
  const chain = await startChain();
  const { fixture, without, id, relay } = await beginWithoutAsset(chain);
  await relay();
  await mine(chain, 20);
  await without.watch();
  await passDeadline(chain, fixture);
  await without.watch();
  expect(await expirePayment(fixture.deps, id)).toMatchObject({ decided: false });

  await fixture.watch();
  await fixture.watch();
  expect((await fixture.status(id)).state).toBe("succeeded");
  const unread = fixture.db.selectFrom("asset_backfill").select("asset").where("asset", "=", chain.asset);
  expect(await unread.execute()).toEqual([]);
});

test.each<[string, string, (result: unknown) => unknown]>([
  ["logs", "eth_getLogs", () => [{ topics: "zz" }]],
  ["receipts", "eth_getTransactionReceipt", (result) => ({ ...(result as object), gasUsed: "zz" })],
])(
  "a transfer of an asset that is back is found although the first endpoint answers with malformed %s",
  async (_what, of, spoil) => {
    const chain = await startChain();
    const liar = await startAlteringProxy({ target: chain.url });
    const { fixture, without, id, relay } = await beginWithoutAsset(chain, { rpcUrls: [liar.url, chain.url] });
    await relay();
    await mine(chain, 20);
    await without.watch();
    liar.alter((method, _params, result) => (method === of && result !== null ? spoil(result) : result));
    for (let pass = 0; pass < 3; pass += 1) {
      await mine(chain, 1);
      await fixture.watch().catch(() => undefined);
    }
    const unread = fixture.db.selectFrom("asset_backfill").select("asset").where("asset", "=", chain.asset);
    expect(await unread.execute()).toEqual([]);
    expect((await fixture.status(id)).state).not.toBe("requires_action");
  },
);

test("a payment waits for an asset that was gone for more than a day, from the moment at which it is read again", async () => {
  const chain = await startChain();
  const { fixture, without, id, relay } = await beginWithoutAsset(chain);
  await relay();
  fixture.clock.advance(25 * 60 * MINUTE);
  await passDeadline(chain, fixture);
  await without.watch();
  const cursor = await fixture.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
  const held = { ...cursor, blockId: cursor.block_id, finalNumber: cursor.final_number };
  await beginBackfills(fixture.db, held, { assets: [chain.asset], at: fixture.clock.now() });
  expect(await expirePayment(fixture.deps, id)).toMatchObject({ decided: false });
  await fixture.watch();
  await fixture.watch();
  expect((await fixture.status(id)).state).toBe("succeeded");
});

test("a transfer of an asset that no watcher had yet is found", async () => {
  const chain = await startChain();
  const databaseUrl = await createDatabase();
  const clock = (await makeDeps(chain, { databaseUrl })).clock;
  const without = await makeWatcherWithout(chain, databaseUrl, clock);
  await startTransfers(without.deps, chain.id);
  const fixture = await makeMerchantFixture(chain, { databaseUrl, clock });
  const { id, relay } = await signPayment(chain, fixture);
  await relay();
  await mine(chain, 20);
  await without.watch();
  expect((await fixture.status(id)).state).toBe("requires_action");
  await fixture.watch();
  await fixture.watch();
  expect((await fixture.status(id)).state).toBe("succeeded");
});

test("two alternating watchers, of which one lacks the asset, lose no transfer", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const without = await makeWatcherWithout(chain, fixture.databaseUrl, fixture.clock);
  const paid: string[] = [];
  for (let pass = 0; pass < 3; pass += 1) {
    const { id, relay } = await signPayment(chain, fixture);
    paid.push(id);
    await without.watch();
    await relay();
    await mine(chain, 3);
    await without.watch();
    await mine(chain, 20);
    await fixture.watch();
  }
  await fixture.watch();
  for (const id of paid) expect((await fixture.status(id)).state).toBe("succeeded");
});

test("a transfer that a watcher without the asset makes final during a backfill is found as well", async () => {
  const chain = await startChain();
  const slow = { finality: { blocks: 5 } };
  const fixture = await makeMerchantFixture(chain, { change: slow });
  const without = await makeWatcherWithout(chain, fixture.databaseUrl, fixture.clock, slow);
  await mine(chain, 20);
  await without.watch();
  await mine(chain, 1);
  // Not every block up to the cursor is final yet.
  await fixture.watch();
  const unread = fixture.db.selectFrom("asset_backfill").select("asset").where("asset", "=", chain.asset);
  expect(await unread.execute()).toHaveLength(1);
  const { id, relay } = await signPayment(chain, fixture);
  await relay();
  await mine(chain, 20);
  await without.watch();
  await fixture.watch();
  await fixture.watch();
  expect((await fixture.status(id)).state).toBe("succeeded");
});

test("a chain is read again from a block that an operator sets, as the runbook of a ledger mismatch says", async () => {
  const chain = await startChain();
  await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, 1_000_000n);
  await mine(chain, 100);
  const fixture = await makeMerchantFixture(chain);
  await fixture.watch();
  expect(await listExceptions(fixture.deps, 10)).toEqual([]);
  await sql`with unread as (insert into asset_backfill (chain, asset, number, since)
    select chain, unnest(assets), 0, now() from chain_cursor where chain = ${chain.id} returning chain)
    update chain_cursor set assets = '{}' where chain in (select chain from unread)`.execute(fixture.db);
  await fixture.watch();
  await fixture.watch();
  const found = await listExceptions(fixture.deps, 10);
  expect(found.map(({ kind, amount }) => [kind, amount])).toEqual([["unknown", 1_000_000n]]);
});

test("a payment whose asset has been gone for a day expires", async () => {
  const chain = await startChain();
  const { fixture, without, id } = await beginWithoutAsset(chain);
  await passDeadline(chain, fixture);
  await without.watch();
  expect(await expirePayment(without.deps, id)).toMatchObject({ decided: false });
  fixture.clock.advance(24 * 60 * MINUTE);
  expect(await expirePayment(without.deps, id)).toEqual({ decided: true });
  expect((await fixture.status(id)).state).toBe("expired");
});

test("the history of an asset that left the networks file blocks no payout on Solana", async () => {
  const solana = await startTestSolana();
  const some = await makeSolanaMerchantFixture(solana);
  // A process that still had the asset stored this cursor.
  await ensureAccountCursor(some.db, { chain: solana.id, account: newSolanaKey().address, newest: undefined });
  await some.watchUntil(() => isCaughtUp(some.deps, solana.id));
});
