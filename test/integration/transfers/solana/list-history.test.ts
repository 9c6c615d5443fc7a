import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { encodeBase58 } from "../../../../chains/solana/base58.ts";
import { MAX_PAGES } from "../../../../transfers/solana/list-history.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { makeListedFixture, payUnsolicited, waitFinalized } from "../../../support/solana-history.ts";
import { fundSolanaBuyer, sendDust, startTestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

const solana = await startTestSolana({ own: true });
const buyer = await fundSolanaBuyer(solana);

/** Makes a deployment with an endpoint that will lie, and honest ones, which has listed a transaction. */
async function startFixture({ honest }: { honest: number }) {
  const liar = await startAlteringProxy({ target: solana.url });
  const rpcUrls = [liar.url, ...Array.from({ length: honest }, () => solana.url)];
  const some = await makeListedFixture(solana, { rpcUrls, change: { maxHeadAgeMs: null } });
  const cursor = () => some.db.selectFrom("account_cursor").selectAll().executeTakeFirstOrThrow();
  const listLater = async (ms: number) => {
    await solana.knobs.jump(20);
    some.clock.advance(ms);
    return some.readHistory();
  };
  await payUnsolicited(solana, some, buyer);
  await waitFor(async () => (await listLater(2_000)) === "idle" && (await cursor()).signature !== null, {
    within: 20_000,
  });
  const { listed_at: listedAt, signature } = await cursor();
  const isListed = async () => ((await cursor()).listed_at?.getTime() ?? 0) > (listedAt?.getTime() ?? 0);
  return { some, liar, cursor, listLater, isListed, signature };
}

const isFirstPage = (bounds: unknown) => (bounds as { before?: string }).before === undefined;
/** Returns a page with one transaction that does not exist, in the slot of the newest one. */
const invent = (result: unknown) => {
  const [newest] = result as object[];
  return newest ? [{ ...newest, signature: encodeBase58(randomBytes(64)), memo: null }] : [];
};

test("an endpoint whose first page always ends at a transaction that does not exist holds listings for half a minute", async () => {
  const { some, liar, cursor, listLater, isListed, signature } = await startFixture({ honest: 1 });
  liar.alter((method, [_account, bounds], result) =>
    method === "getSignaturesForAddress" && isFirstPage(bounds) ? invent(result) : result,
  );
  const paymentId = await payUnsolicited(solana, some, buyer);
  await listLater(1_000);
  expect(await some.transfers()).toContainEqual(expect.objectContaining({ payment_id: paymentId, state: "included" }));
  expect(await isListed()).toBe(false);
  await listLater(31_000);
  expect(await isListed()).toBe(true);
  const { signature: newest } = await cursor();
  expect(newest).not.toBe(signature);
  expect(await some.db.selectFrom("observation").select("tx_hash").execute()).toContainEqual({ tx_hash: newest });
  // What one endpoint alone has listed is listed again once the other one tells the truth.
  expect((await cursor()).relist_slot).not.toBeNull();
  liar.alter(undefined);
  await listLater(1_000);
  expect((await cursor()).relist_slot).toBeNull();
});

test.each([
  { honest: 2, others: "two others list", waitsMs: 1_000 },
  { honest: 1, others: "another one has listed for half a minute", waitsMs: 31_000 },
])("an endpoint whose list has no end holds no listing that $others", async ({ honest, waitsMs }) => {
  const { some, liar, listLater, isListed } = await startFixture({ honest });
  await payUnsolicited(solana, some, buyer);
  let newest: unknown;
  liar.alter((method, [_account, bounds], result) => {
    if (method !== "getSignaturesForAddress") return result;
    if (isFirstPage(bounds)) newest = result;
    return invent(newest);
  });
  await listLater(1_000);
  expect(await isListed()).toBe(honest === 2);
  await listLater(waitsMs);
  expect(await isListed()).toBe(true);
});

test("an endpoint that lists one transaction at a time makes a listing that takes two runs", async () => {
  const { some, liar: slow, cursor, isListed, listLater } = await startFixture({ honest: 1 });
  const lists: number[] = [];
  await waitFinalized(solana, ...(await sendDust(solana, some.keys.treasury.address, MAX_PAGES + 2)));
  slow.alter((method, _params, result) => {
    if (method !== "getSignaturesForAddress") return result;
    lists.push((result as unknown[]).length);
    return (result as unknown[]).slice(0, 1);
  });
  expect(await listLater(1_000)).toBe("more");
  expect(await cursor()).toMatchObject({ listing: expect.anything(), relist_slot: null });
  expect(await listLater(1_000)).toBe("idle");
  expect(await isListed()).toBe(true);
  expect((await cursor()).relist_slot).toBeNull();
  // It continues in the second run where it stopped in the first one.
  expect(lists.toSorted((one, other) => other - one)).toEqual(lists);
});

test.each([
  { what: "a signature with a NUL", change: { signature: "a\u0000b" } },
  { what: "a slot above 2^63", change: { slot: 1e30 } },
  { what: "a slot that is no integer", change: { slot: 1.5 } },
])("an endpoint that lists $what keeps nothing of the other one from being stored", async ({ change }) => {
  const second = await startAlteringProxy({ target: solana.url });
  const some = await makeListedFixture(solana, { rpcUrls: [solana.url, second.url] });
  second.alter((method, _params, result) => {
    if (method !== "getSignaturesForAddress") return result;
    const [newest, ...others] = result as object[];
    return newest ? [{ ...newest, ...change }, newest, ...others] : result;
  });
  const paymentId = await payUnsolicited(solana, some, buyer);
  await some.watchUntilState(paymentId, "succeeded");
});
