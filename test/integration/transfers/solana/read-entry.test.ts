import { expect, test } from "vitest";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { makeListedFixture, payUnsolicited, waitFinalized } from "../../../support/solana-history.ts";
import { fundSolanaBuyer, sendDust, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana();
const buyer = await fundSolanaBuyer(solana);

type Shown = {
  transaction: { message: { instructions: { programIdIndex: number }[] } };
  meta: Record<string, unknown>;
};
const altered =
  (change: (shown: Shown) => void): Alter =>
  (method, _params, result) => {
    if (method !== "getTransaction" || result === null) return result;
    const shown = structuredClone(result) as Shown;
    change(shown);
    return shown;
  };
const failed = altered(({ meta }) => {
  const error = { InstructionError: [0, { Custom: 1 }] };
  Object.assign(meta, { err: error, status: { Err: error } });
});
const withoutBalances = altered(({ meta }) => Object.assign(meta, { preTokenBalances: [], postTokenBalances: [] }));
const withNullBalances = altered(({ meta }) => Object.assign(meta, { preTokenBalances: null }));
/** Shows a transfer as made by a program that calls the Token program, such as a multisig: with its calls, without them, or with null. */
const byProgram = (calls: "recorded" | "hidden" | "unrecorded") =>
  altered(({ transaction, meta }) => {
    const [outer] = transaction.message.instructions;
    if (!outer) return;
    const inner = { ...outer, stackHeight: 2 };
    outer.programIdIndex = 0;
    const shown = calls === "recorded" ? [{ index: 0, instructions: [inner] }] : [];
    meta["innerInstructions"] = calls === "unrecorded" ? null : shown;
  });

/** Makes a deployment with two endpoints that alter what they show. */
async function startFixture() {
  const [first, second] = [
    await startAlteringProxy({ target: solana.url }),
    await startAlteringProxy({ target: solana.url }),
  ];
  const rpcUrls = [first.url, second.url];
  const some = await makeListedFixture(solana, { rpcUrls, change: { maxHeadAgeMs: null } });
  const entries = () => some.db.selectFrom("history_entry").selectAll().execute();
  const observations = () => some.db.selectFrom("observation").selectAll().execute();
  return { some, first, second, entries, observations };
}

test.each([
  { what: "its error", lie: failed, truth: undefined },
  { what: "no token balances", lie: withoutBalances, truth: undefined },
  { what: "null for its balances", lie: withNullBalances, truth: undefined },
  { what: "no calls of programs", lie: byProgram("hidden"), truth: byProgram("recorded") },
])(
  "a deposit for which the first endpoint shows $what is paid by what the second one shows",
  async ({ lie, truth }) => {
    const { some, first, second, observations } = await startFixture();
    first.alter(lie);
    second.alter(truth);
    const paymentId = await payUnsolicited(solana, some, buyer);
    await some.watchUntilState(paymentId, "succeeded");
    expect(await observations()).toMatchObject([{ payer: buyer.address, amount: 1_000_000n }]);
  },
);

test("a transaction whose movements no endpoint explains is kept while endpoints disagree, and then read", async () => {
  const { some, first, second, entries, observations } = await startFixture();
  first.alter(withoutBalances);
  second.alter(failed);
  const paymentId = await payUnsolicited(solana, some, buyer);
  for (let count = 0; count < 6; count += 1) {
    await some.readHistory();
    some.clock.advance(60_000);
  }
  expect(await entries()).toMatchObject([{ last_error: expect.stringContaining("different movements") }]);
  expect(await observations()).toEqual([]);
  first.alter(undefined);
  second.alter(undefined);
  await some.readHistory();
  expect(await observations()).toMatchObject([{ payer: buyer.address }]);
  expect(await some.transfers()).toMatchObject([{ payment_id: paymentId }]);
});

test("a movement that no instruction explains is recorded when two endpoints show it", async () => {
  const { some, first, second, observations } = await startFixture();
  first.alter(byProgram("hidden"));
  second.alter(byProgram("hidden"));
  await payUnsolicited(solana, some, buyer);
  await some.readHistory();
  expect(await observations()).toMatchObject([{ payer: "", amount: 1_000_000n }]);
});

test("a deposit through a program waits for an endpoint that records the calls of programs", async () => {
  const { some, first, second, entries, observations } = await startFixture();
  first.alter(byProgram("unrecorded"));
  second.alter(byProgram("unrecorded"));
  const paymentId = await payUnsolicited(solana, some, buyer);
  await some.readHistory();
  expect(await entries()).toMatchObject([{ last_error: expect.stringContaining("no inner instructions") }]);
  expect(await observations()).toEqual([]);
  second.alter(byProgram("recorded"));
  some.clock.advance(60_000);
  await some.watchUntilState(paymentId, "succeeded");
  expect(await observations()).toMatchObject([{ payer: buyer.address }]);
});

test("one endpoint that alone shows a transaction without a movement is believed for as long as the other one is away", async () => {
  const { some, first, second, entries, observations } = await startFixture();
  first.alter(failed);
  second.alter(() => new RpcRefusal({ code: 0, message: "" }, 503));
  await payUnsolicited(solana, some, buyer);
  await some.readHistory();
  expect(await entries()).toMatchObject([{ last_error: expect.stringContaining("only one endpoint") }]);
  let waited = 0;
  for (; (await entries()).length > 0 && waited < 120; waited += 10) {
    some.clock.advance(10_000);
    await some.readHistory();
  }
  expect(waited).toBeGreaterThanOrEqual(30);
  expect(waited).toBeLessThan(120);
  expect(await observations()).toEqual([]);
  second.alter(undefined);
  await some.watchUntil(async () => (await observations()).length > 0);
  expect(await observations()).toMatchObject([{ payer: buyer.address }]);
});

test("dust is read with one call each, also at nodes that do not record the calls of programs", async () => {
  const { some, first, second, observations } = await startFixture();
  let reads = 0;
  const count = altered(({ meta }) => {
    reads += 1;
    meta["innerInstructions"] = null;
  });
  first.alter(count);
  second.alter(count);
  await waitFinalized(solana, ...(await sendDust(solana, some.keys.treasury.address, 5)));
  await some.readHistory();
  expect(await observations()).toHaveLength(5);
  expect(reads).toBe(5);
});
