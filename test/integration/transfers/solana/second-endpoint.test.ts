import { expect, test } from "vitest";
import { fundTokens } from "../../../../local/spl-tokens.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });
const LARGE = 2_000_000n;

/**
 * A merchant's deployment with two endpoints: the first one's results can be altered, and the second can be
 * unavailable.
 */
async function startTwoEndpoints() {
  const [first, away] = [
    await startAlteringProxy({ target: solana.url }),
    await startFaultProxy({ target: solana.url }),
  ];
  const asset = { asset: solana.asset, symbol: "USDC", name: "USD Coin", decimals: 6, peg: "iso4217/USD" };
  const change = { assets: [{ ...asset, agreementThreshold: String(LARGE) }] };
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [first.url, away.url], change });
  const accept = async (cents: bigint) => {
    const paymentId = await fixture.create(cents);
    await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
    return paymentId;
  };
  const stateOf = async (paymentId: string) => (await fixture.status(paymentId)).state;
  return { first, away, fixture, accept, stateOf };
}

type InContext = { context: { slot: number }; value: unknown[] };

test("a transaction that one endpoint reports as final and another has never seen is not booked", async () => {
  const { first, fixture, accept, stateOf } = await startTwoEndpoints();
  const paymentId = await accept(100n);
  // Every send is lost, and the first endpoint reports it as final.
  await solana.knobs.drop("all");
  first.alter((method, _params, result) => {
    if (method !== "getSignatureStatuses") return result;
    const { context, value } = result as InContext;
    const final = { slot: context.slot - 10, confirmations: null, err: null, confirmationStatus: "finalized" };
    return { context, value: value.map(() => final) };
  });
  await fixture.submit();
  for (let pass = 0; pass < 8; pass += 1) await fixture.watch(new AbortController().signal).catch(() => undefined);
  fixture.clock.advance(31_000);
  await fixture.watch().catch(() => undefined);
  expect(await stateOf(paymentId)).toBe("processing");
  await solana.knobs.drop(0);
});

test("an unavailable endpoint delays no small payment, and a large one waits until it is back", async () => {
  const { away, fixture, accept, stateOf } = await startTwoEndpoints();
  away.refuse(true);
  const [small, large] = [await accept(100n), await accept(200n)];
  await fixture.submit();
  await fixture.watchUntil(async () => (await stateOf(small)) === "succeeded");
  for (let pass = 0; pass < 3; pass += 1) await fixture.watch().catch(() => undefined);
  expect(await stateOf(large)).toBe("processing");
  const { values } = await fixture.deps.metrics.agreementWaits.get();
  expect(values[0]?.value).toBeGreaterThan(0);
  away.refuse(false);
  await fixture.watchUntil(async () => (await stateOf(large)) === "succeeded");
});

test("a large deposit whose amount one endpoint invents is not booked, and one that both endpoints show is", async () => {
  const { first, fixture } = await startTwoEndpoints();
  const open = () =>
    fixture.db.selectFrom("ledger_entry").select("amount").where("account", "=", "exceptions").execute();
  // Raises the amount of a small deposit in its balances and instructions.
  first.alter((method, _params, result) => {
    if (method !== "getTransaction" || result === null) return result;
    const { meta } = result as { meta: { postTokenBalances: { uiTokenAmount: { amount: string } }[] } };
    for (const { uiTokenAmount } of meta.postTokenBalances)
      uiTokenAmount.amount = String(BigInt(uiTokenAmount.amount) + 9_000_000n);
    return result;
  });
  await fundTokens(solana.client, solana.mint, [fixture.keys.treasury.address], 7n);
  const observations = () => fixture.db.selectFrom("observation").select("amount").execute();
  const isRead = async () => (await observations()).some(({ amount }) => amount >= LARGE);
  await fixture.watchUntil(isRead);
  for (let pass = 0; pass < 5; pass += 1) await fixture.watch(new AbortController().signal).catch(() => undefined);
  expect((await open()).filter(({ amount }) => -amount >= LARGE)).toEqual([]);
  first.alter(undefined);
  await fundTokens(solana.client, solana.mint, [fixture.keys.treasury.address], LARGE + 5n);
  await fixture.watchUntil(async () => (await open()).some(({ amount }) => amount === -LARGE - 5n));
  expect((await open()).filter(({ amount }) => -amount >= LARGE)).toHaveLength(1);
});
