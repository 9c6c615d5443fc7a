import { expect, test } from "vitest";
import { newSolanaKey } from "../../../../local/solana-client.ts";
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

// Transactions that name the treasury's token account and move nothing at the first endpoint: a second one has to show the same.

const solana = await startTestSolana({ own: true });
const buyer = await fundSolanaBuyer(solana);

/** Makes a deployment with two endpoints, and counts the reads of each. */
async function startFixture(change: Record<string, unknown> = {}) {
  const [first, second] = [
    await startAlteringProxy({ target: solana.url }),
    await startAlteringProxy({ target: solana.url }),
  ];
  const rpcUrls = [first.url, second.url];
  const some = await makeListedFixture(solana, { rpcUrls, change: { maxHeadAgeMs: null, ...change } });
  return { some, first, second };
}

const entriesOf = ({ db }: SolanaMerchantFixture) => db.selectFrom("history_entry").selectAll().execute();

/** An endpoint that shows these transactions as failed, so without a movement, and calls `onRead` for each. */
const hide =
  (hidden: readonly string[], onRead: (signature: string) => void = () => undefined): Alter =>
  (method, [signature], result) => {
    if (method !== "getTransaction" || !hidden.includes(signature as string)) return result;
    onRead(signature as string);
    const error = { InstructionError: [0, { Custom: 1 }] };
    const { meta, ...shown } = result as { meta: object };
    return { ...shown, meta: { ...meta, err: error, status: { Err: error } } };
  };
const refuseReads: Alter = (method, _params, result) =>
  method === "getTransaction" ? new RpcRefusal({ code: -32_603, message: "internal" }) : result;

test("300 transactions without a movement that wait for a second endpoint are read once each, and delay no later deposit", async () => {
  const { some, first, second } = await startFixture({ historyReadsPerSecond: 50 });
  const flood = [
    ...(await sendDeposits(solana, some, 100)),
    ...(await sendDeposits(solana, some, 100)),
    ...(await sendDeposits(solana, some, 100)),
  ];
  const reads: string[] = [];
  first.alter(hide(flood, (signature) => reads.push(signature)));
  second.alter(refuseReads);
  while (reads.length < flood.length) await some.readHistory();
  await readTimes(some, 6);
  expect(reads.toSorted()).toEqual(flood.toSorted());
  expect(await entriesOf(some)).toHaveLength(flood.length);
  const [deposit = ""] = await sendDeposits(solana, some, 1);
  await readTimes(some, 1);
  expect(await listObserved(some)).toEqual([deposit]);
});

test("a process that is started later compares what waits without reading it again, at the second endpoint only", async () => {
  const { some, first, second } = await startFixture();
  const sent = await sendDeposits(solana, some, 3);
  const reads: string[] = [];
  const count = hide(sent, (signature) => reads.push(signature));
  first.alter(count);
  second.alter(refuseReads);
  await some.readHistory();
  expect(await entriesOf(some)).toHaveLength(3);
  const restarted = await some.anotherProcess();
  second.alter(hide(sent));
  some.clock.advance(60_000);
  await restarted.readHistory();
  expect(await entriesOf(some)).toEqual([]);
  expect(reads.toSorted()).toEqual(sent.toSorted());
});

test("a transaction that is kept because endpoints contradict each other is read from both again", async () => {
  const { some, first, second } = await startFixture();
  const [sent = ""] = await sendDeposits(solana, some, 1);
  first.alter(hide([sent]));
  // A change of the balance that no instruction explains.
  second.alter((method, _params, result) => {
    if (method !== "getTransaction" || result === null) return result;
    const shown = structuredClone(result) as {
      transaction: { message: { instructions: { programIdIndex: number }[] } };
    };
    for (const one of shown.transaction.message.instructions) one.programIdIndex = 0;
    return shown;
  });
  await some.readHistory();
  expect(await entriesOf(some)).toMatchObject([{ reading: null, last_error: expect.stringContaining("different") }]);
  first.alter(undefined);
  await readTimes(some, 1);
  expect(await listObserved(some)).toEqual([sent]);
});

test.each([
  { what: "hides a deposit", reading: { by: "first", digest: null }, isHidden: false },
  { what: "shows something else", reading: { by: "second", digest: "ab" }, isHidden: false },
  {
    what: "agrees with a lie in the name of an endpoint that was removed",
    reading: { by: "third", digest: null },
    isHidden: true,
  },
])("a row in a stolen database that $what changes nothing about a deposit", async ({ reading, isHidden }) => {
  const { some, first, second } = await startFixture();
  const names = some.chain.network.rpc.map(({ name }) => name);
  const by = { first: names[0], second: names[1] }[reading.by] ?? reading.by;
  first.alter(refuseReads);
  second.alter(refuseReads);
  const paymentId = await payUnsolicited(solana, some, buyer);
  await some.readHistory().catch(() => undefined);
  // Later listings do not show it again.
  await solana.knobs.jump(20);
  await some.readHistory().catch(() => undefined);
  await some.db
    .updateTable("history_entry")
    .set({ reading: JSON.stringify({ ...reading, by }) })
    .execute();
  const [entry] = await entriesOf(some);
  first.alter(isHidden ? hide([entry?.signature ?? ""]) : undefined);
  second.alter(undefined);
  some.clock.advance(60_000);
  await some.watchUntilState(paymentId, "succeeded");
  const [movement, ...others] = await some.db.selectFrom("observation").selectAll().execute();
  expect(movement).toMatchObject({ payer: buyer.address, amount: 1_000_000n });
  expect(others).toEqual([]);
});

/** An endpoint that shows transactions with the key of another account in the place of this one. */
const rename =
  (account: string): Alter =>
  (method, _params, result) => {
    const other = newSolanaKey().address;
    return method === "getTransaction" ? JSON.parse(JSON.stringify(result).replaceAll(account, other)) : result;
  };

test.each([
  { what: "without a movement", lie: (_some: SolanaMerchantFixture, sent: string) => hide([sent]) },
  {
    what: "without the account for which it lists it",
    lie: ({ chain }: SolanaMerchantFixture) => rename([...chain.tokens.values()][0]?.treasuryAccount ?? ""),
  },
])(
  "a transaction that only one endpoint returns, $what, is kept while the other one lists it, and counts when that one returns it",
  async ({ lie }) => {
    const { some, first, second } = await startFixture();
    const [sent = ""] = await sendDeposits(solana, some, 1);
    first.alter(lie(some, sent));
    second.alter((method, _params, result) => (method === "getTransaction" ? null : result));
    // Later listings do not show it again.
    await some.readHistory();
    await solana.knobs.jump(20);
    await readTimes(some, 8);
    expect(await entriesOf(some)).toMatchObject([{ last_error: expect.stringContaining("only one endpoint") }]);
    second.alter(undefined);
    some.clock.advance(600_000);
    await some.readHistory();
    expect(await listObserved(some)).toEqual([sent]);
  },
);
