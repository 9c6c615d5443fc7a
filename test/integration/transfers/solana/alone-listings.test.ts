import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { encodeBase58 } from "../../../../chains/solana/base58.ts";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { listObserved, makeListedFixture, sendDeposits } from "../../../support/solana-history.ts";
import { makeSolanaMerchantFixture, type SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { startTestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

// Two endpoints, one of which is away while the other one lists the history alone, and lies.

const solana = await startTestSolana({ own: true });

const cursorOf = ({ db }: SolanaMerchantFixture) =>
  db.selectFrom("account_cursor").selectAll().executeTakeFirstOrThrow();

/** Lists and reads the history after the cluster has moved on, so that listings count what was sent so far as listed. */
async function moveOn(some: SolanaMerchantFixture, ms = 2_000): Promise<void> {
  await solana.knobs.jump(20);
  some.clock.advance(ms);
  while ((await some.readHistory()) === "more") some.clock.advance(1_000);
}

const isAway: Alter = (method, _params, result) =>
  method === "getSignaturesForAddress" ? new RpcRefusal({ code: -32_603, message: "internal" }) : result;
type Bounds = { until?: string; before?: string };

type Listed = { signature: string; slot: number; err: null; memo: null };

/** Returns an endpoint that adds two transactions to its lists which do not exist, and leaves out `hidden`. */
function startLiar() {
  const [newest = "", earlier = ""] = [encodeBase58(randomBytes(64)), encodeBase58(randomBytes(64))];
  let slot = 0;
  const hide =
    (hidden: readonly string[]): Alter =>
    (method, params, result) => {
      if (method !== "getSignaturesForAddress") return result;
      const { until, before } = params[1] as Bounds;
      const real = (result as Listed[]).filter(({ signature }) => !hidden.includes(signature));
      if (before !== undefined) return real;
      slot ||= (real[0]?.slot ?? 0) + 1;
      const invented = [newest, earlier].map((signature, at) => ({
        signature,
        slot: slot - at,
        err: null,
        memo: null,
      }));
      const all = [...invented, ...real].toSorted((one, other) => other.slot - one.slot);
      const end = all.findIndex(({ signature }) => signature === until);
      return end === -1 ? all : all.slice(0, end);
    };
  return { hide, signatures: [newest, earlier] };
}

/** An endpoint that does not know where a list is to end, and refuses to list, as one that reads its old history from Bigtable. */
const refuseUnknown =
  (unknown: readonly string[]): Alter =>
  (method, params, result) => {
    if (method !== "getSignaturesForAddress") return result;
    const { until } = params[1] as Bounds;
    return until !== undefined && unknown.includes(until)
      ? new RpcRefusal({ code: -32_603, message: "row not found" })
      : result;
  };

/** Makes a deployment with these endpoints, which has listed the transaction that made the treasury's account. */
async function makeListed(rpcUrls: readonly string[]): Promise<SolanaMerchantFixture> {
  const some = await makeListedFixture(solana, { rpcUrls, change: { maxHeadAgeMs: null } });
  const isListed = async () => {
    await moveOn(some);
    return (await cursorOf(some)).signature !== null;
  };
  await waitFor(isListed, { within: 20_000 });
  return some;
}

/** Makes a deployment whose first endpoint has listed the history alone, up to a transaction that it has invented. */
async function startFixture() {
  const liar = await startAlteringProxy({ target: solana.url });
  const honest = await startAlteringProxy({ target: solana.url });
  const some = await makeListed([liar.url, honest.url]);
  await sendDeposits(solana, some, 2);
  await moveOn(some);
  const { hide, signatures } = startLiar();
  liar.alter(hide([]));
  honest.alter(isAway);
  await sendDeposits(solana, some, 2);
  await moveOn(some);
  await moveOn(some);
  expect((await cursorOf(some)).signature).toBe(signatures[0]);
  return { some, liar, honest, hide, signatures };
}

test.each([
  { what: "lists back to the beginning", alter: () => undefined },
  { what: "refuses a list that ends there", alter: refuseUnknown },
])(
  "deposits that an endpoint hides after it alone has ended a listing at an invented transaction are read as soon as the other one answers, which $what",
  async ({ alter }) => {
    const { some, liar, honest, hide, signatures } = await startFixture();
    honest.alter(alter(signatures));
    const hidden = await sendDeposits(solana, some, 2);
    liar.alter(hide(hidden));
    await moveOn(some, 100);
    expect(await listObserved(some)).toEqual(expect.arrayContaining(hidden));
    // The two show nothing new in common, and the next deposits are not hidden either.
    const later = await sendDeposits(solana, some, 1);
    liar.alter(hide([...hidden, ...later]));
    await moveOn(some, 100);
    expect(await listObserved(some)).toEqual(expect.arrayContaining(later));
    expect((await cursorOf(some)).signature).toBe(signatures[0]);
    // Once they have something in common, lists end there again.
    const [shown = ""] = await sendDeposits(solana, some, 1);
    await moveOn(some, 100);
    expect(await cursorOf(some)).toMatchObject({ signature: shown, shown_by: null, relist_slot: null });
  },
);

/** More than a day of slots: endpoints may have deleted what is older. */
const DAY_SLOTS = 216_000;

test.each([
  { what: "says where its history begins", begins: undefined },
  { what: "does not know where its history begins", begins: 0 },
])(
  "a token without deposits for long costs one call a listing, and is listed at two endpoints, after one of them has missed a listing that $what",
  async ({ begins }) => {
    const poor = await startAlteringProxy({ target: solana.url });
    const proxy = await startFaultProxy({ target: poor.url });
    const some = await makeListed([solana.url, proxy.url]);
    await solana.knobs.jump(DAY_SLOTS + 1_000);
    await some.readHistory();
    const from = Number((await cursorOf(some)).listed_slot) - 100;
    poor.alter(isAway);
    await some.readHistory();
    expect((await cursorOf(some)).shown_by).not.toBeNull();
    poor.alter((method, _params, result) => {
      if (method === "getFirstAvailableBlock") return begins ?? from;
      if (method !== "getSignaturesForAddress") return result;
      return (result as Listed[]).filter(({ slot }) => slot >= from);
    });
    // What was missed is listed again.
    await some.readHistory();
    const count = () => ["getSignaturesForAddress", "getFirstAvailableBlock"].map((method) => proxy.calls[method] ?? 0);
    const [lists = 0, begin = 0] = count();
    await some.readHistory();
    expect(count()).toEqual([lists + 1, begin]);
    expect((await cursorOf(some)).relist_slot).toBeNull();
  },
);

test("a transaction that one endpoint invents when an account is first read ends no list of another endpoint", async () => {
  const { keys, ...earlier } = await makeSolanaMerchantFixture(solana);
  await sendDeposits(solana, { keys, ...earlier }, 2);
  const [liar, honest] = [
    await startAlteringProxy({ target: solana.url }),
    await startAlteringProxy({ target: solana.url }),
  ];
  const slot = await solana.client.connection.getSlot("finalized");
  const invented: Listed = { signature: encodeBase58(randomBytes(64)), slot, err: null, memo: null };
  liar.alter((method, _params, result) =>
    method === "getSignaturesForAddress" ? [invented, ...(result as Listed[])] : result,
  );
  const change = { historyReadsPerSecond: 10_000, maxHeadAgeMs: null };
  const some = await makeSolanaMerchantFixture(solana, { keys, rpcUrls: [liar.url, honest.url], change });
  expect(await cursorOf(some)).toMatchObject({ signature: invented.signature });
  liar.alter(undefined);
  await moveOn(some);
  await moveOn(some, 31_000);
  const sent = await sendDeposits(solana, some, 1);
  await moveOn(some);
  expect(await listObserved(some)).toEqual(sent);
  expect(await cursorOf(some)).toMatchObject({ signature: sent[0], shown_by: null });
});

test.each([
  ["answers", false],
  ["is away at first", true],
])(
  "deposits that an endpoint hides after it has invented where the reading begins, in a slot far ahead, are read from the other one, which %s",
  async (_what, isAwayAtFirst) => {
    const { keys } = await makeSolanaMerchantFixture(solana);
    const [liar, honest] = [
      await startAlteringProxy({ target: solana.url }),
      await startAlteringProxy({ target: solana.url }),
    ];
    const invented: Listed = { signature: encodeBase58(randomBytes(64)), slot: 1e12, err: null, memo: null };
    liar.alter((method, params, result) => {
      if (method !== "getSignaturesForAddress") return result;
      return (params[1] as Bounds).before === undefined ? [invented] : [];
    });
    const change = { historyReadsPerSecond: 10_000, maxHeadAgeMs: null };
    const some = await makeSolanaMerchantFixture(solana, { keys, rpcUrls: [liar.url, honest.url], change });
    if (isAwayAtFirst) honest.alter(isAway);
    const sent = await sendDeposits(solana, some, 2);
    await moveOn(some);
    await moveOn(some, 31_000);
    honest.alter(undefined);
    await moveOn(some, 31_000);
    await moveOn(some, 31_000);
    expect((await listObserved(some)).toSorted()).toEqual(sent.toSorted());
  },
);
