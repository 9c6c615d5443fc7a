import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { encodeBase58 } from "../../../../chains/solana/base58.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { makeListedFixture, payUnsolicited } from "../../../support/solana-history.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

const solana = await startTestSolana();
const buyer = await fundSolanaBuyer(solana);

test("a page that ends at a transaction which does not exist ends no later listing", async () => {
  const liar = await startAlteringProxy({ target: solana.url });
  const some = await makeListedFixture(solana, { rpcUrls: [liar.url, solana.url], change: { maxHeadAgeMs: null } });
  const cursor = () => some.db.selectFrom("account_cursor").selectAll().executeTakeFirstOrThrow();
  await payUnsolicited(solana, some, buyer);
  await waitFor(
    async () => {
      some.clock.advance(2_000);
      await some.readHistory();
      return (await cursor()).signature !== null;
    },
    { within: 20_000 },
  );
  await payUnsolicited(solana, some, buyer);
  let lies = 0;
  liar.alter((method, _params, result) => {
    if (method !== "getSignaturesForAddress" || lies > 0) return result;
    lies += 1;
    const [newest] = result as { slot: number }[];
    return [{ ...newest, signature: encodeBase58(randomBytes(64)), memo: null }];
  });
  await expect(some.readHistory()).rejects.toMatchObject({ code: "history_short" });
  expect(lies).toBe(1);
  const before = await cursor();
  expect(before.listing).toBeNull();
  const paymentId = await payUnsolicited(solana, some, buyer);
  some.clock.advance(31_000);
  await some.readHistory();
  expect((await cursor()).listed_at?.getTime()).toBeGreaterThan(before.listed_at?.getTime() ?? 0);
  expect(await some.transfers()).toContainEqual(expect.objectContaining({ payment_id: paymentId, state: "included" }));
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
