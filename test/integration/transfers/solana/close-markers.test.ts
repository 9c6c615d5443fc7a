import { PublicKey } from "@solana/web3.js";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";

test("a marker that one of two endpoints does not show is not forgotten, and its rent comes back", async () => {
  const solana = await startTestSolana({ own: true });
  const first = await startAlteringProxy({ target: solana.url });
  const rpcUrls = [first.url, solana.url];
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls, change: { payoutMarkerDays: 40 } });
  const paymentId = await fixture.pay(await fundSolanaBuyer(solana));
  await fixture.settle((await fixture.settlementOf(paymentId)).id);
  await fixture.submit();
  const markers = () => fixture.db.selectFrom("payout_marker").selectAll().execute();
  await fixture.watchUntil(async () => (await markers()).length === 1);
  const [marker] = await markers();
  const address = marker?.address ?? "";
  const read = () => solana.client.connection.getAccountInfo(new PublicKey(address), "finalized");
  let wrong = 0;
  first.alter((method, params, result) => {
    const [addresses] = params as [string[]];
    if (method !== "getMultipleAccounts" || !addresses.includes(address)) return result;
    wrong += 1;
    return { ...(result as object), value: addresses.map(() => null) };
  });
  fixture.clock.advance(40 * 86_400_000);
  await fixture.watchUntil(async () => wrong > 0);
  await fixture.watch(new AbortController().signal);
  expect(await markers()).toHaveLength(1);
  first.alter(undefined);
  // The signer is not asked again for ten minutes after a refusal.
  fixture.clock.advance(11 * 60_000);
  await fixture.watchUntil(async () => (await markers()).length === 0);
  expect(await read()).toBeNull();
});
