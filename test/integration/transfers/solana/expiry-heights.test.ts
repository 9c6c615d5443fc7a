import { afterEach, expect, test } from "vitest";
import { signAsWallet } from "../../../../local/solana-buyer.ts";
import { makeConfirmSteps } from "../../../support/solana-confirm-steps.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { startSolanaProxy } from "../../../support/solana-test-endpoint.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });
const [first, second] = [await startSolanaProxy(solana), await startSolanaProxy(solana)];
const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [first.fault.url, second.fault.url] });
const ofTwo = { fixture, ...makeConfirmSteps(fixture) };
const { connection } = solana.client;

/** Blocks in which a lost transaction expires, counted from its first full pass: those of a blockhash, and some more. */
const USUAL_BLOCKS = 250;

afterEach(async () => {
  for (const { fault, alter } of [first, second]) {
    alter(undefined);
    fault.refuse(false);
  }
  await solana.knobs.drop(0);
  await solana.knobs.resume();
});

type Report = (height: number) => number;
type Reports = { lastHeight?: Report; height?: Report; slot?: Report };

const tooHigh: Report = (height) => height + 1_000_000;
const nearer: Report = (height) => height + 5_000;

/** Makes the first endpoint report a blockhash's last height, or the cluster's heights, as it likes. */
function makeFirstReport({ lastHeight = (one) => one, height = (one) => one, slot = (one) => one }: Reports): void {
  first.alter((method, _params, result) => {
    if (method === "getEpochInfo") {
      const info = result as { absoluteSlot: number; blockHeight: number };
      return { ...info, absoluteSlot: slot(info.absoluteSlot), blockHeight: height(info.blockHeight) };
    }
    if (method !== "getLatestBlockhash") return result;
    const { context, value } = result as { context: object; value: { lastValidBlockHeight: number } };
    return { context, value: { ...value, lastValidBlockHeight: lastHeight(value.lastValidBlockHeight) } };
  });
}

/** A payment that was accepted and not sent. */
async function makeAccepted({ fixture, begin, confirmAndVerify } = ofTwo): Promise<string> {
  // A blockhash is reused for a second, and a jump of the cluster may have expired it.
  fixture.clock.advance(1_000);
  const begun = await begin(await fundSolanaBuyer(solana, 1_000_000n));
  expect(await confirmAndVerify(begun, signAsWallet(begun.transaction, begun.buyer))).toBe("verified");
  return begun.paymentId;
}

/** Sends a payment's transaction, which every endpoint accepts and loses. Returns its bytes. */
async function sendLost(of = ofTwo) {
  const { fixture, rowsOf } = of;
  const paymentId = await makeAccepted(of);
  // Without slots, the blockhash does not expire on a busy machine.
  await solana.knobs.pause();
  await solana.knobs.drop("all");
  await fixture.submit();
  const [transaction] = (await rowsOf(paymentId)).transactions;
  return { paymentId, bytes: transaction?.bytes ?? Buffer.alloc(0) };
}

/** Runs two passes that check everything. On a slow machine, the second one gets what the search of the first one finds. */
async function watchLater({ fixture } = ofTwo): Promise<void> {
  for (let pass = 0; pass < 2; pass += 1) {
    await solana.knobs.jump(5);
    await fixture.watch();
  }
}
const stateOf = async (paymentId: string, { fixture } = ofTwo) => (await fixture.status(paymentId)).state;

test.each<[string, Reports]>([
  ["as long over", { lastHeight: () => 1 }],
  ["as long over, and a height that is too low", { lastHeight: () => 1, height: () => 2 }],
])(
  "a payment succeeds whose transaction is sent late, and whose blockhash one endpoint reports %s",
  async (_, reports) => {
    makeFirstReport(reports);
    const { paymentId, bytes } = await sendLost();
    await watchLater();
    await solana.knobs.jump(50);
    makeFirstReport({});
    await watchLater();
    expect(await stateOf(paymentId)).toBe("processing");
    await solana.knobs.drop(0);
    await solana.knobs.resume();
    await connection.sendRawTransaction(bytes, { skipPreflight: true });
    await fixture.watchUntilState(paymentId, "succeeded");
  },
);

test.each<[string, Reports]>([
  ["a last height that is far too high", { lastHeight: (height) => height + 1_000_000 }],
  ["heights that are far too high", { height: (height) => height + 1_000_000 }],
])("a payment whose transaction was lost expires although one endpoint reported %s", async (_, reports) => {
  makeFirstReport(reports);
  const { paymentId } = await sendLost();
  await watchLater();
  if (reports.height) makeFirstReport({});
  await watchLater();
  await solana.knobs.jump(USUAL_BLOCKS);
  await watchLater();
  expect(await stateOf(paymentId)).toBe("expired");
});

test("a payment whose transaction was lost expires when a second endpoint answers again, and holds nothing up before", async () => {
  const { paymentId } = await sendLost();
  second.fault.refuse(true);
  await watchLater();
  await solana.knobs.jump(USUAL_BLOCKS);
  await watchLater();
  expect(await stateOf(paymentId)).toBe("processing");
  second.fault.refuse(false);
  await expect.poll(() => watchLater().then(() => stateOf(paymentId)), { timeout: 30_000 }).toBe("expired");
});

test("a payment that was never sent does not expire by the height of the only endpoint that answers", async () => {
  const paymentId = await makeAccepted();
  second.fault.refuse(true);
  makeFirstReport({ height: (height) => height + 1_000_000 });
  for (let pass = 0; pass < 2; pass += 1) await expect(watchLater()).rejects.toMatchObject({ code: "rpc_unreachable" });
  expect(await stateOf(paymentId)).toBe("processing");
});

const LATER = { slots: 1_000, ms: 6 * 60_000 };

test.each<[string, Reports, { slots: number; ms: number }]>([
  ["whatever last height one of them reported", { lastHeight: tooHigh }, { ...LATER, ms: 0 }],
  ["whatever heights one of them reports", { lastHeight: tooHigh, height: tooHigh }, LATER],
  [
    "long after one of them reported heights that are nearer",
    { lastHeight: tooHigh, height: nearer },
    { ...LATER, slots: 4_500 },
  ],
])("a payment stays in processing whose blocks both endpoints have deleted, %s", async (_, reports, later) => {
  makeFirstReport(reports);
  const { paymentId } = await sendLost();
  // An endpoint that an earlier test has refused answers again some seconds later.
  const signedHeight = async () => {
    await watchLater();
    return (await ofTwo.rowsOf(paymentId)).transactions[0]?.signed_height;
  };
  await expect.poll(signedHeight, { timeout: 30_000 }).not.toBeNull();
  await solana.knobs.jump(later.slots);
  fixture.clock.advance(later.ms);
  const slot = await connection.getSlot("finalized");
  const height = (await connection.getBlockHeight("finalized")) + 1_000_000;
  for (const one of [first, second])
    one.alter((method, _params, result) => {
      if (method === "getFirstAvailableBlock") return slot;
      if (one !== first || !reports.height || method !== "getEpochInfo") return result;
      return { ...(result as object), blockHeight: height };
    });
  for (let pass = 0; pass < 3; pass += 1) await watchLater();
  expect(await stateOf(paymentId)).toBe("processing");
});

test("a payment whose transaction was lost expires although one of two endpoints always reports heights that are far too high", async () => {
  makeFirstReport({ lastHeight: tooHigh, height: tooHigh });
  const { paymentId } = await sendLost();
  await watchLater();
  await solana.knobs.jump(USUAL_BLOCKS);
  await watchLater();
  expect(await stateOf(paymentId)).toBe("processing");
  fixture.clock.advance(5 * 60_000);
  await expireLater(paymentId);
});

test("a payment whose transaction was lost stays in processing while the cluster makes no slots final, and expires afterwards", async () => {
  const { paymentId } = await sendLost();
  await watchLater();
  const old = await connection.getEpochInfo("finalized");
  for (const { alter } of [first, second])
    alter((method, params, result) => {
      if (!JSON.stringify(params).includes("finalized")) return result;
      if (method === "getEpochInfo") return old;
      return method === "isBlockhashValid" ? { context: { slot: old.absoluteSlot }, value: false } : result;
    });
  await solana.knobs.jump(USUAL_BLOCKS);
  fixture.clock.advance(6 * 60_000);
  for (let pass = 0; pass < 3; pass += 1) await watchLater();
  expect(await stateOf(paymentId)).toBe("processing");
  for (const { alter } of [first, second]) alter(undefined);
  await expireLater(paymentId);
});

test("a payment whose blockhash is valid for long stays in processing although one endpoint says that it has expired", async () => {
  const { paymentId } = await sendLost();
  first.alter((method, _params, result) =>
    method === "isBlockhashValid" ? { ...(result as object), value: false } : result,
  );
  fixture.clock.advance(6 * 60_000);
  for (let pass = 0; pass < 3; pass += 1) await watchLater();
  expect(await stateOf(paymentId)).toBe("processing");
  await expireLater(paymentId);
});

test("a payment whose transaction was lost expires although one endpoint reported a last height that is far too low, and no history goes back so far", async () => {
  makeFirstReport({ lastHeight: () => 1 });
  const { paymentId } = await sendLost();
  const slot = await connection.getSlot("finalized");
  const blockTime = Math.floor(fixture.clock.now().getTime() / 1_000) - 7_200;
  for (const { alter } of [first, second])
    alter((method, _params, result) => {
      if (method === "getFirstAvailableBlock") return slot;
      return method === "getBlock" ? { ...(result as object), blockTime } : result;
    });
  await watchLater();
  await expireLater(paymentId);
});

/** Makes passes until a payment has expired. On a slow machine, a pass gets what the search of an earlier one has found. */
async function expireLater(paymentId: string, of = ofTwo): Promise<void> {
  const watch = async () => {
    await solana.knobs.jump(USUAL_BLOCKS);
    await watchLater(of);
    return stateOf(paymentId, of);
  };
  await expect.poll(watch, { timeout: 30_000 }).toBe("expired");
}

test.each<[string, Reports]>([
  ["a height that no column holds", { height: () => 1e300 }],
  ["a height that is no whole number", { height: () => 1.5 }],
  ["a slot that is no whole number", { slot: (slot) => slot - 0.5 }],
])(
  "passes go on while one endpoint reports %s, and a payment whose transaction was lost expires afterwards",
  async (_, reports) => {
    makeFirstReport(reports);
    const { paymentId } = await sendLost();
    await watchLater();
    makeFirstReport({});
    await watchLater();
    await expireLater(paymentId);
  },
);

test("a payment whose transaction was lost expires while one endpoint of three reports heights that are far too high", async () => {
  const third = await makeSolanaMerchantFixture(solana, { rpcUrls: [first.fault.url, second.fault.url, solana.url] });
  const ofThree = { fixture: third, ...makeConfirmSteps(third) };
  makeFirstReport({ height: (height) => height + 1_000_000 });
  const { paymentId } = await sendLost(ofThree);
  await watchLater(ofThree);
  await expireLater(paymentId, ofThree);
});
