import { PublicKey } from "@solana/web3.js";
import { expect, test } from "vitest";
import { type Alter, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";

test.each([
  { which: "one of two endpoints does not show", liars: 1, slotsBefore: 0 },
  { which: "no endpoint shows in its old state", liars: 2, slotsBefore: 1 },
])("a marker that $which is not forgotten, and its rent comes back", async ({ liars, slotsBefore }) => {
  const solana = await startTestSolana({ own: true });
  const endpoints = [
    await startAlteringProxy({ target: solana.url }),
    await startAlteringProxy({ target: solana.url }),
  ];
  const rpcUrls = endpoints.map(({ url }) => url);
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
  const lie: Alter = (method, params, result) => {
    const [addresses] = params as [string[]];
    if (method !== "getMultipleAccounts" || !addresses.includes(address)) return result;
    wrong += 1;
    const { context } = result as { context: { slot: number } };
    const slot = slotsBefore > 0 ? Number(marker?.slot) - slotsBefore : context.slot;
    return { context: { ...context, slot }, value: addresses.map(() => null) };
  };
  for (const endpoint of endpoints.slice(0, liars)) endpoint.alter(lie);
  fixture.clock.advance(40 * 86_400_000);
  await fixture.watchUntil(async () => wrong >= liars);
  await fixture.watch(new AbortController().signal);
  // Where the signer asks the other endpoint, the marker is closed by now.
  expect((await markers()).length === 0 && (await read()) !== null).toBe(false);
  for (const endpoint of endpoints) endpoint.alter(undefined);
  // The signer is not asked again for ten minutes after a refusal.
  fixture.clock.advance(11 * 60_000);
  await fixture.watchUntil(async () => (await markers()).length === 0);
  expect(await read()).toBeNull();
});
