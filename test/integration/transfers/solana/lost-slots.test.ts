import { afterEach, expect, test } from "vitest";
import { RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true, finalityDepth: 20 });
const { connection } = solana.client;

type Loss = { endpoints: number; keepsBlocks?: boolean; isFinal?: boolean };

afterEach(async () => {
  await solana.knobs.resume();
});

/**
 * A payment whose transaction is final, or in a slot that `isFinal` keeps from becoming final. The first of the endpoints has lost its
 * slot: it knows no transaction that the deployment sends from now on and, unless it `keepsBlocks`, has no block.
 */
async function payAtLostSlot({ endpoints, keepsBlocks = false, isFinal = true }: Loss) {
  const first = await startAlteringProxy({ target: solana.url });
  const others = await Promise.all(
    Array.from({ length: endpoints - 1 }, () => startAlteringProxy({ target: solana.url })),
  );
  const rpcUrls = [first.url, ...others.map(({ url }) => url)];
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls });
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
  if (!isFinal) await solana.knobs.pause();
  await fixture.submit();
  const [transaction] = (await fixture.transactions()).slice(-1);
  const hash = transaction?.hash ?? "";
  first.alter((method, params, result) => {
    if (method === "getBlock" && !keepsBlocks)
      return new RpcRefusal({ code: -32_007, message: `Slot ${params[0]} was skipped, or missing due to ledger jump` });
    if (method !== "getSignatureStatuses") return result;
    const { context, value } = result as { context: object; value: unknown[] };
    return { context, value: value.map((one, at) => ((params[0] as string[])[at] === hash ? null : one)) };
  });
  const depth = async () => (await connection.getSignatureStatus(hash)).value?.confirmationStatus;
  if (isFinal) await fixture.watchUntil(async () => (await depth()) === "finalized");
  else await solana.knobs.jump(2);
  // Nodes keep the statuses of about a minute in memory.
  fixture.clock.advance(60_000);
  const state = async () => (await fixture.status(paymentId)).state;
  const row = async () => (await fixture.transactions()).find((one) => one.hash === hash);
  const disagreements = async () =>
    (await fixture.deps.metrics.endpointDisagreements.get()).values.map(({ labels }) => labels["endpoint"]);
  const watchFor = async (passes: number) => {
    for (let pass = 0; pass < passes; pass += 1) {
      await solana.knobs.jump(5);
      await fixture.watch();
    }
  };
  return { first, others, fixture, paymentId, depth, state, row, disagreements, watchFor };
}

test("a payment whose slot one of three endpoints has lost succeeds when the two others show it", async () => {
  const { fixture, paymentId, row, disagreements } = await payAtLostSlot({ endpoints: 3 });
  await fixture.watchUntilState(paymentId, "succeeded");
  await fixture.watchUntil(async () => (await row())?.state === "final");
  expect(fixture.lines.join("\n")).toContain("an endpoint has lost a slot; two others decide");
  expect(await disagreements()).toContain("local-0");
});

test("an endpoint that has the block of a slot without the transaction keeps the payment from being booked, whatever two others show", async () => {
  const { first, fixture, paymentId, state, row, watchFor } = await payAtLostSlot({ endpoints: 3, keepsBlocks: true });
  await watchFor(4);
  expect([(await row())?.state, await state()]).toEqual(["included", "processing"]);
  first.alter(undefined);
  await fixture.watchUntilState(paymentId, "succeeded");
});

test("an endpoint that knows no transaction of a slot that is not final yet keeps the payment from being booked", async () => {
  const lost = { endpoints: 3, keepsBlocks: true, isFinal: false };
  const { first, fixture, paymentId, depth, state, watchFor } = await payAtLostSlot(lost);
  await watchFor(2);
  expect([await depth(), await state()]).toEqual(["confirmed", "processing"]);
  first.alter(undefined);
  await solana.knobs.resume();
  await fixture.watchUntilState(paymentId, "succeeded");
});

test("a payment whose slot one of two endpoints has lost is not booked by the word of the other, is reported, and succeeds with another endpoint", async () => {
  const { first, fixture, paymentId, state, row, disagreements, watchFor } = await payAtLostSlot({ endpoints: 2 });
  await watchFor(4);
  fixture.clock.advance(31_000);
  await watchFor(2);
  expect([(await row())?.state, await state()]).toEqual(["included", "processing"]);
  expect(fixture.lines.join("\n")).toContain("endpoints disagree about");
  expect(await disagreements()).toContain("local-0");
  first.alter(undefined);
  await fixture.watchUntilState(paymentId, "succeeded");
});

test("a transaction that only one endpoint claims to know is in flight again when the endpoint takes that back", async () => {
  const { first, others, fixture, paymentId, state, row, watchFor } = await payAtLostSlot({ endpoints: 2 });
  await watchFor(2);
  expect((await row())?.state).toBe("included");
  const slot = await connection.getSlot("finalized");
  for (const one of [first, ...others])
    one.alter((method, _params, result) => {
      if (method === "getFirstAvailableBlock") return 0;
      if (method !== "getSignatureStatuses") return result;
      const { context, value } = result as { context: object; value: unknown[] };
      return { context: { ...context, slot }, value: value.map(() => null) };
    });
  await watchFor(2);
  expect([(await row())?.state, await state()]).toEqual(["accepted", "processing"]);
  for (const one of [first, ...others]) one.alter(undefined);
  await fixture.watchUntilState(paymentId, "succeeded");
});
