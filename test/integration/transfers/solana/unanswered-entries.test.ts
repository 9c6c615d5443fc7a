import { expect, test } from "vitest";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import {
  listObserved,
  makeListedFixture,
  payUnsolicited,
  readTimes,
  sendDeposits,
} from "../../../support/solana-history.ts";
import type { SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";

// Transactions that move nothing at the first endpoint, and that the second one cannot show: it is down, or its history begins later.

const solana = await startTestSolana({ own: true });
const buyer = await fundSolanaBuyer(solana);

/** Makes a deployment with two endpoints that has listed its history a few times. */
async function startFixture() {
  const [first, second] = [
    await startAlteringProxy({ target: solana.url }),
    await startAlteringProxy({ target: solana.url }),
  ];
  const rpcUrls = [first.url, second.url];
  const some = await makeListedFixture(solana, { rpcUrls, change: { maxHeadAgeMs: null } });
  await solana.knobs.jump(20);
  await readTimes(some, 2);
  return { some, first, second };
}

const entriesOf = ({ db }: SolanaMerchantFixture) => db.selectFrom("history_entry").selectAll().execute();

/** An endpoint that shows transactions as failed, so without a movement. */
const hide: Alter = (method, _params, result) => {
  if (method !== "getTransaction" || result === null) return result;
  const error = { InstructionError: [0, { Custom: 1 }] };
  const { meta, ...shown } = result as { meta: object };
  return { ...shown, meta: { ...meta, err: error, status: { Err: error } } };
};
const refuseReads: Alter = (method, _params, result) =>
  method === "getTransaction" ? new RpcRefusal({ code: -32_603, message: "internal" }) : result;

/** An endpoint that has nothing from before a slot. */
const keepFrom =
  (from: number): Alter =>
  (method, _params, result) => {
    if (method === "getFirstAvailableBlock") return from;
    if (method === "getTransaction") return result && (result as { slot: number }).slot >= from ? result : null;
    if (method !== "getSignaturesForAddress") return result;
    return (result as { slot: number }[]).filter(({ slot }) => slot >= from);
  };
const isDown: Alter = () => new RpcRefusal({ code: -32_603, message: "internal" });
const cursorOf = ({ db }: SolanaMerchantFixture) =>
  db.selectFrom("account_cursor").selectAll().executeTakeFirstOrThrow();

/** Reads the history every ten seconds until nothing waits. */
async function readUntilEmpty(some: SolanaMerchantFixture): Promise<void> {
  for (let read = 0; read < 30 && (await entriesOf(some)).length > 0; read += 1) {
    some.clock.advance(10_000);
    await solana.knobs.jump(10);
    await some.readHistory();
  }
  expect(await entriesOf(some)).toEqual([]);
}

test("a transaction without a movement that was made while the second endpoint was down, and that its history does not go back to, is read after half a minute", async () => {
  const { some, first, second } = await startFixture();
  second.alter(isDown);
  first.alter(hide);
  await sendDeposits(solana, some, 1);
  await some.readHistory();
  await solana.knobs.jump(1_000);
  second.alter(keepFrom((await solana.client.connection.getSlot("finalized")) - 200));
  // It is listed again before half a minute is over.
  for (let read = 0; read < 3; read += 1) await readTimes(some, 1);
  expect(await cursorOf(some)).toMatchObject({ relist_slot: null });
  await readUntilEmpty(some);
  expect(await listObserved(some)).toEqual([]);
});

test("a payment's transaction without a movement delays it for half a minute when the second endpoint goes down after it has listed it, and is read again when that one is back", async () => {
  const { some, first, second } = await startFixture();
  second.alter(refuseReads);
  first.alter(hide);
  const paymentId = await payUnsolicited(solana, some, buyer);
  await solana.knobs.jump(20);
  await some.readHistory();
  const [entry] = await entriesOf(some);
  expect(entry).toMatchObject({ urgent: true, reading: { digest: null } });
  expect(await cursorOf(some)).toMatchObject({ relist_slot: null });
  second.alter(isDown);
  await readUntilEmpty(some);
  expect(await cursorOf(some)).toMatchObject({ relist_slot: Number(entry?.slot) - 1, relist_at: entry?.listed_after });
  expect(await listObserved(some)).toEqual([]);
  second.alter(undefined);
  await some.watchUntilState(paymentId, "succeeded");
  expect(await listObserved(some)).toEqual([entry?.signature]);
});

test("a transaction that names no payment waits for a second endpoint that has listed it and is down", async () => {
  const { some, first, second } = await startFixture();
  second.alter(refuseReads);
  first.alter(hide);
  await sendDeposits(solana, some, 1);
  await solana.knobs.jump(20);
  await some.readHistory();
  second.alter(isDown);
  await readTimes(some, 8);
  expect(await entriesOf(some)).toHaveLength(1);
});

test("an attempt to compare a transaction does not count while no endpoint answers any call", async () => {
  const { some, first, second } = await startFixture();
  second.alter(refuseReads);
  first.alter(hide);
  await sendDeposits(solana, some, 1);
  await some.readHistory();
  const [waiting] = await entriesOf(some);
  const refuseAll: Alter = () => new RpcRefusal({ code: 0, message: "unavailable" }, 503);
  for (const endpoint of [first, second]) endpoint.alter(refuseAll);
  for (let read = 0; read < 3; read += 1) {
    some.clock.advance(60_000);
    await expect(some.readHistory()).rejects.toMatchObject({ code: "rpc_unreachable" });
  }
  expect(await entriesOf(some)).toEqual([waiting]);
});
