import { expect, test } from "vitest";
import { type Mint, makeMint } from "../../../../local/spl-tokens.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { makeSolanaMerchantFixture, type SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { startTestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

// Two endpoints, one of which lacks a part of the history of one token account.

const solana = await startTestSolana({ own: true });

async function readAll(some: SolanaMerchantFixture): Promise<void> {
  while ((await some.readHistory()) === "more") some.clock.advance(1_000);
}

/** Makes a deployment that has listed the transactions that made the treasury's accounts, in slots that both endpoints have reached. */
async function setUp({ mints }: { mints: readonly Mint[] }) {
  const [rich, poor] = [
    await startAlteringProxy({ target: solana.url }),
    await startAlteringProxy({ target: solana.url }),
  ];
  const rpcUrls = [rich.url, poor.url];
  const change = { historyReadsPerSecond: 10_000, maxHeadAgeMs: null };
  const some = await makeSolanaMerchantFixture(solana, { mints, rpcUrls, change });
  const list = async () => {
    const rows = await some.db.selectFrom("account_cursor").selectAll().orderBy("account").execute();
    return rows.map((row) => ({ ...row, slot: Number(row.slot), listed_slot: Number(row.listed_slot) }));
  };
  const areListed = async () => {
    await some.readHistory();
    return (await list()).every(({ signature }) => signature !== null);
  };
  await waitFor(areListed, { within: 30_000 });
  await solana.knobs.jump(1_000);
  await readAll(some);
  const before = await list();
  /** Returns which accounts have a listing that counts, after the cluster has moved on. */
  const listLater = async () => {
    await solana.knobs.jump(20);
    await readAll(some);
    return (await list()).map((one, index) => one.listed_slot > (before[index]?.listed_slot ?? 0));
  };
  return { some, poor, before, list, listLater };
}

test("an endpoint that lacks the newest transaction of one token holds its listings for half a minute, although it has those of another token", async () => {
  const { some, poor, before, listLater } = await setUp({ mints: [await makeMint(solana.client)] });
  expect(before).toHaveLength(2);
  poor.alter((method, [account], result) =>
    method === "getSignaturesForAddress" && account === before[0]?.account ? [] : result,
  );
  expect(await listLater()).toEqual([false, true]);
  expect(some.lines.join("")).toContain("waits for an endpoint");
  some.clock.advance(20_000);
  expect(await listLater()).toEqual([false, true]);
  some.clock.advance(20_000);
  expect(await listLater()).toEqual([true, true]);
});

test("an endpoint whose history begins after the newest transaction and before the last listing makes the next one with another endpoint", async () => {
  const { poor, before, list, listLater } = await setUp({ mints: [] });
  const [known] = before;
  if (!known) throw new Error("there is no account");
  const first = known.listed_slot - 50;
  expect(first).toBeGreaterThan(known.slot);
  poor.alter((method, _params, result) => {
    if (method === "getFirstAvailableBlock") return first;
    if (method !== "getSignaturesForAddress") return result;
    return (result as { slot: number }[]).filter(({ slot }) => slot >= first);
  });
  expect(await listLater()).toEqual([true]);
  expect(await list()).toMatchObject([{ signature: known.signature, relist_slot: null }]);
});
