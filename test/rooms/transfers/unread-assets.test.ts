import type { Hex } from "viem";
import { expect, test } from "vitest";
import { encodeTransfer } from "../../../chains/evm/eip3009.ts";
import { ensureAccountCursor } from "../../../db/account-cursors.ts";
import { newSolanaKey } from "../../../ops/local/solana-client.ts";
import { createBooks } from "../../../payments/book.ts";
import { expirePayment } from "../../../payments/expire.ts";
import { toAuthorization } from "../../../transfers/authorization.ts";
import { isCaughtUp } from "../../../transfers/caught-up.ts";
import { startTransfers } from "../../../transfers/start.ts";
import { watchChain } from "../../../transfers/watch.ts";
import { relayByStranger, whenMined } from "../../support/carry.ts";
import { fundBuyer, mine, networksFor, startChain, type TestChain } from "../../support/chain.ts";
import { createDatabase } from "../../support/database.ts";
import { makeDeps } from "../../support/deps.ts";
import { startTestSolana } from "../../support/solana.ts";
import { makeSolanaTill } from "../../support/solana-till.ts";
import { makeTill, signOption, type Till } from "../../support/till.ts";

const MINUTE = 60_000;

/** A watcher of the same deployment whose networks file has another asset instead. */
async function makeWatcherWithout(chain: TestChain, databaseUrl: string, clock: Till["clock"], more: object = {}) {
  const usdc = (await networksFor(chain)).chains[0]?.assets[0];
  const assets = [{ ...usdc, asset: `${chain.id}/erc20:0x${"99".repeat(20)}` }];
  const { deps } = await makeDeps(chain, { databaseUrl, clock, change: { ...more, assets } });
  const watch = async () => {
    await whenMined(chain);
    await watchChain(deps, { chain: chain.id, signal: AbortSignal.abort(), books: createBooks(deps) });
  };
  return { deps, watch };
}

/** A payment of one minute that its buyer has signed; `relay` sends the signature as a third party. */
async function signPayment(chain: TestChain, till: Till) {
  const id = await till.create(100n, { expiresAt: new Date(till.deps.now().getTime() + MINUTE) });
  const buyer = await fundBuyer(chain);
  const [option] = await till.offer(id, buyer);
  if (!option) throw new Error("there is no way to pay");
  const [signed] = await signOption(option, buyer);
  const rows = till.db.selectFrom("payment_option").selectAll().where("payment_id", "=", id);
  const row = await rows.executeTakeFirstOrThrow();
  const call = encodeTransfer(toAuthorization(row), signed?.data[0] as Hex);
  return { id, relay: () => relayByStranger(chain, call) };
}

/** Both clocks pass the deadline, and the block of the deadline is final. */
async function passDeadline(chain: TestChain, till: Till): Promise<void> {
  till.clock.advance(3 * MINUTE);
  const timestamp = BigInt(Math.floor(till.clock.now().getTime() / 1_000));
  await chain.client.setNextBlockTimestamp({ timestamp });
  await mine(chain, 20);
}

test("a transfer that arrived while the networks file lacked its asset is found once the asset is back, before its payment expires", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  await till.watch();
  const { id, relay } = await signPayment(chain, till);
  const without = await makeWatcherWithout(chain, till.databaseUrl, till.clock);
  await without.watch();
  await relay();
  await mine(chain, 20);
  await without.watch();
  await passDeadline(chain, till);
  await without.watch();
  expect(await expirePayment(till.deps, id)).toMatchObject({ decided: false });

  await till.watch();
  await till.watch();
  expect((await till.status(id)).state).toBe("succeeded");
  const unread = till.db.selectFrom("unread_asset").select("asset").where("asset", "=", chain.asset);
  expect(await unread.execute()).toEqual([]);
});

test("a transfer of an asset that no watcher had yet is found", async () => {
  const chain = await startChain();
  const databaseUrl = await createDatabase();
  const clock = (await makeDeps(chain, { databaseUrl })).clock;
  const without = await makeWatcherWithout(chain, databaseUrl, clock);
  await startTransfers(without.deps, chain.id);
  const till = await makeTill(chain, { databaseUrl, clock });
  const { id, relay } = await signPayment(chain, till);
  await relay();
  await mine(chain, 20);
  await without.watch();
  expect((await till.status(id)).state).toBe("requires_action");
  await till.watch();
  await till.watch();
  expect((await till.status(id)).state).toBe("succeeded");
});

test("two alternating watchers, of which one lacks the asset, lose no transfer", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  const without = await makeWatcherWithout(chain, till.databaseUrl, till.clock);
  const paid: string[] = [];
  for (let pass = 0; pass < 3; pass += 1) {
    const { id, relay } = await signPayment(chain, till);
    paid.push(id);
    await without.watch();
    await relay();
    await mine(chain, 3);
    await without.watch();
    await mine(chain, 20);
    await till.watch();
  }
  await till.watch();
  for (const id of paid) expect((await till.status(id)).state).toBe("succeeded");
});

test("a transfer that a watcher without the asset makes final during a backfill is found as well", async () => {
  const chain = await startChain();
  const slow = { finality: { blocks: 5 } };
  const till = await makeTill(chain, { change: slow });
  const without = await makeWatcherWithout(chain, till.databaseUrl, till.clock, slow);
  await mine(chain, 20);
  await without.watch();
  await mine(chain, 1);
  // Not every block up to the cursor is final yet.
  await till.watch();
  const unread = till.db.selectFrom("unread_asset").select("asset").where("asset", "=", chain.asset);
  expect(await unread.execute()).toHaveLength(1);
  const { id, relay } = await signPayment(chain, till);
  await relay();
  await mine(chain, 20);
  await without.watch();
  await till.watch();
  await till.watch();
  expect((await till.status(id)).state).toBe("succeeded");
});

test("a payment whose asset has been gone for a day expires", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  await till.watch();
  const { id } = await signPayment(chain, till);
  const without = await makeWatcherWithout(chain, till.databaseUrl, till.clock);
  await without.watch();
  await passDeadline(chain, till);
  await without.watch();
  expect(await expirePayment(without.deps, id)).toMatchObject({ decided: false });
  till.clock.advance(24 * 60 * MINUTE);
  expect(await expirePayment(without.deps, id)).toEqual({ decided: true });
  expect((await till.status(id)).state).toBe("expired");
});

test("the history of an asset that left the networks file blocks no payout on Solana", async () => {
  const solana = await startTestSolana();
  const some = await makeSolanaTill(solana);
  // A process that still had the asset stored this cursor.
  await ensureAccountCursor(some.db, { chain: solana.id, account: newSolanaKey().address, newest: undefined });
  await some.watchUntil(() => isCaughtUp(some.deps, solana.id));
});
