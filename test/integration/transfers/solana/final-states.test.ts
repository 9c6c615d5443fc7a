import { expect, test } from "vitest";
import { RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { payUnsolicited } from "../../../support/solana-history.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });
/** Slots after which an endpoint that stands still is asked last: half a minute of them. */
const LAGGING_SLOTS = 400;

type Listed = { slot: number };
type Statuses = { context: unknown; value: ({ slot: number; confirmationStatus: string } | null)[] };
const isFinal = (options: unknown) => (options as { commitment?: string } | undefined)?.commitment === "finalized";

/** Starts an endpoint that follows the head, and whose final slot stands still from `stop` on, as everything that is final. */
async function startStandingStill() {
  const endpoint = await startAlteringProxy({ target: solana.url });
  const stop = async () => {
    const stuck = await solana.client.connection.getEpochInfo("finalized");
    const at = stuck.absoluteSlot;
    const toStatus = (one: Statuses["value"][number]) =>
      one && one.slot > at && one.confirmationStatus === "finalized"
        ? { ...one, confirmationStatus: "confirmed", confirmations: 31 }
        : one;
    endpoint.alter((method, params, result) => {
      if (method === "getSlot" && isFinal(params[0])) return at;
      if (method === "getEpochInfo" && isFinal(params[0])) return stuck;
      if (method === "getSignaturesForAddress") {
        const least = (params[1] as { minContextSlot?: number }).minContextSlot ?? 0;
        if (least > at) return new RpcRefusal({ code: -32_016, message: "Minimum context slot has not been reached" });
        return (result as Listed[]).filter(({ slot }) => slot <= at);
      }
      if (method === "getTransaction" && isFinal(params[1]))
        return ((result as Listed | null)?.slot ?? 0) > at ? null : result;
      if (method !== "getSignatureStatuses") return result;
      const { context, value } = result as Statuses;
      return { context, value: value.map(toStatus) };
    });
  };
  return { url: endpoint.url, stop };
}

test.each(["finalized", "confirmed"])(
  "payments, deposits and payouts go on (%s) while the first endpoint follows the head and its final slot stands still",
  async (finality) => {
    const first = await startStandingStill();
    const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [first.url, solana.url], change: { finality } });
    const earlier = await fixture.pay(await fundSolanaBuyer(solana));
    const aloneBefore = await countAlone();
    await first.stop();
    const paymentId = await fixture.create();
    await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
    await fixture.submit();
    const pushed = await payUnsolicited(solana, fixture, await fundSolanaBuyer(solana));
    await solana.knobs.jump(LAGGING_SLOTS);
    const stateOf = async (id: string) => (await fixture.status(id)).state;
    await fixture.watch();
    if (finality === "finalized") expect(await stateOf(paymentId)).toBe("processing");
    await fixture.watchUntil(async () => {
      fixture.clock.advance(5_000);
      return (await stateOf(paymentId)) === "succeeded" && (await stateOf(pushed)) === "succeeded";
    });
    await fixture.watchUntil(() => isCaughtUp(fixture.deps, solana.id));
    expect(await fixture.settle((await fixture.settlementOf(earlier)).id)).toEqual(["begun"]);
    expect(await countAlone()).toBeGreaterThan(aloneBefore);

    async function countAlone() {
      const { values } = await fixture.deps.metrics.singleEndpointConfirmations.get();
      return values.reduce((sum, { value }) => sum + value, 0);
    }
  },
);

test.each([
  { which: "first", order: (one: string, other: string) => [one, other] },
  { which: "second", order: (one: string, other: string) => [other, one] },
])("a final slot of the $which endpoint that none serves holds neither deposits nor payouts", async ({ order }) => {
  const liar = await startAlteringProxy({ target: solana.url });
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: order(liar.url, solana.url) });
  const earlier = await fixture.pay(await fundSolanaBuyer(solana));
  liar.alter((method, [options], result) => {
    if (method !== "getEpochInfo" || !isFinal(options)) return result;
    const { absoluteSlot, blockHeight } = result as { absoluteSlot: number; blockHeight: number };
    return { ...(result as object), absoluteSlot: absoluteSlot + 1e6, blockHeight: blockHeight + 1e6 };
  });
  const pushed = await payUnsolicited(solana, fixture, await fundSolanaBuyer(solana));
  // Longer than any wait for an endpoint.
  for (let waited = 0; waited < 120_000; waited += 10_000) {
    fixture.clock.advance(10_000);
    // A full pass begins.
    await solana.knobs.jump(5);
    await fixture.watch();
  }
  await fixture.watchUntilState(pushed, "succeeded");
  await fixture.watchUntil(() => isCaughtUp(fixture.deps, solana.id));
  expect(await fixture.settle((await fixture.settlementOf(earlier)).id)).toEqual(["begun"]);
});
