import { afterEach, expect, test } from "vitest";
import { signAsWallet } from "../../../../local/solana-buyer.ts";
import { fundTokens, makeMint } from "../../../../local/spl-tokens.ts";
import { makeConfirmSteps } from "../../../support/solana-confirm-steps.ts";
import { waitFinalized } from "../../../support/solana-history.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { startSolanaProxy } from "../../../support/solana-test-endpoint.ts";
import { fundSolanaBuyer, sendDust, sendTokens, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });
const [first, second] = [await startSolanaProxy(solana), await startSolanaProxy(solana)];
const mint = await makeMint(solana.client);
const fixture = await makeSolanaMerchantFixture(solana, {
  mints: [mint],
  rpcUrls: [first.fault.url, second.fault.url],
  // The clock of a test runs ahead of the cluster's.
  change: { maxHeadAgeMs: null },
});
const { begin, rowsOf, confirmAndVerify } = makeConfirmSteps(fixture);

/** Slots after which every blockhash that is in use now has expired. */
const LIFETIME = 250;
const MINUTE = 60_000;

afterEach(async () => {
  for (const { fault, alter } of [first, second]) {
    alter(undefined);
    fault.fail(undefined);
  }
  await solana.knobs.resume();
});

/** A payment that was accepted and not sent. `payBeside` pays it by a transfer of another account's own, in the token of `in`. */
async function makeAccepted() {
  // A blockhash is reused for a second, and a jump of the cluster may have expired it.
  fixture.clock.advance(1_000);
  const begun = await begin(await fundSolanaBuyer(solana, 1_000_000n));
  const other = await fundSolanaBuyer(solana, 1_000_000n);
  await fundTokens(solana.client, mint, [other.address], 1_000_000n);
  await fixture.offer(begun.paymentId, other);
  expect(await confirmAndVerify(begun, signAsWallet(begun.transaction, begun.buyer))).toBe("verified");
  const [transfer] = (await rowsOf(begun.paymentId)).transfers;
  const payBeside = async ({ isFinal = true, in: token = solana.mint } = {}) => {
    const memo = transfer?.authorization_nonce ?? "";
    const to = fixture.keys.treasury.address;
    const signature = await sendTokens({ ...solana, mint: token }, { from: other, to, amount: 1_000_000n, memo });
    if (isFinal) await waitFinalized(solana, signature);
  };
  return { ...begun, payBeside };
}

/** Runs passes that check everything. On a slow machine, a pass gets what the search of an earlier one has found. */
async function watchLater({ reads = true, passes = 2 } = {}): Promise<void> {
  for (let pass = 0; pass < passes; pass += 1) {
    await solana.knobs.jump(5);
    if (reads) await fixture.watch();
    else await fixture.watchOnly();
  }
}

const signedFor = async (paymentId: string) => (await rowsOf(paymentId)).transactions.length;
/** Submits until a payment is signed. On a slow machine, a later call gets what the check of an earlier one has found. */
const submitUntilSigned = (paymentId: string) =>
  expect.poll(() => fixture.submit().then(() => signedFor(paymentId)), { timeout: 30_000 }).toBe(1);
const stateOf = async (paymentId: string) => (await fixture.status(paymentId)).state;
/** Returns how many exceptions of at least a token there are. What a test sends besides may be read in the next one. */
const exceptions = async () => {
  const entries = fixture.db.selectFrom("ledger_entry").select("amount").where("account", "=", "exceptions");
  return (await entries.execute()).filter(({ amount }) => BigInt(amount) ** 2n >= 1_000_000n ** 2n).length;
};

const refuseBlockhashes = ({ alter }: typeof first) =>
  alter((method, _params, result) =>
    method === "isBlockhashValid" ? { ...(result as object), value: false } : result,
  );

test("bytes whose blockhash expired while no worker ran are not signed, and the buyer's own transfer pays", async () => {
  const before = await exceptions();
  const { paymentId, payBeside } = await makeAccepted();
  await payBeside();
  await solana.knobs.jump(LIFETIME);
  fixture.clock.advance(2 * MINUTE);
  await fixture.submit();
  expect(await signedFor(paymentId)).toBe(0);
  await fixture.watchUntilState(paymentId, "succeeded");
  expect(await exceptions()).toBe(before);
});

/** What the endpoints show of a buyer's own transfer that is confirmed, and what the service has read of it. */
type Beside = Parameters<Awaited<ReturnType<typeof makeAccepted>>["payBeside"]>[0] & {
  pays: string;
  afterwards?: () => Promise<void>;
};

test.each<Beside>([
  { pays: "which is listed and not final" },
  {
    pays: "which is hidden by one endpoint and not final",
    afterwards: async () =>
      first.alter((method, _params, result) => (method === "getSignaturesForAddress" ? [] : result)),
  },
  { pays: "which is in another token and not final", in: mint },
  {
    pays: "which comes before others where endpoints list one transaction at a time",
    afterwards: async () => {
      await sendDust(solana, fixture.keys.treasury.address, 2);
      for (const { alter } of [first, second])
        alter((method, _params, result) =>
          method === "getSignaturesForAddress" ? (result as object[]).slice(0, 1) : result,
        );
    },
  },
  {
    pays: "which is read and not booked",
    isFinal: true,
    afterwards: async () => {
      await solana.knobs.jump(20);
      await fixture.readHistory();
    },
  },
])(
  "bytes that waited are not signed while their blockhash is valid, after the buyer's own transfer, $pays",
  async ({ afterwards, isFinal = false, in: token = solana.mint }) => {
    await fixture.watchUntil(async () => (await fixture.readHistory()) === "idle");
    const before = await exceptions();
    const { paymentId, payBeside } = await makeAccepted();
    await payBeside({ isFinal, in: token });
    await afterwards?.();
    await solana.knobs.pause();
    fixture.clock.advance(10_000);
    const submit = async () => {
      await fixture.submit();
      return { why: (await rowsOf(paymentId)).transfers[0]?.last_error, signed: await signedFor(paymentId) };
    };
    const held = { why: "a transaction that is not booked yet names it", signed: 0 };
    await expect.poll(submit, { timeout: 30_000 }).toEqual(held);
    for (const { alter } of [first, second]) alter(undefined);
    await solana.knobs.resume();
    await fixture.watchUntilState(paymentId, "succeeded");
    expect(await signedFor(paymentId)).toBe(0);
    expect(await exceptions()).toBe(before);
  },
);

test("bytes that waited are not signed while the only endpoint that answers has not reached what was listed before", async () => {
  await fixture.watchUntil(async () => (await fixture.readHistory()) === "idle");
  const { paymentId, payBeside } = await makeAccepted();
  await payBeside({ isFinal: false });
  await solana.knobs.pause();
  fixture.clock.advance(10_000);
  const isListing = (method: string) => method === "getSignaturesForAddress";
  first.fault.fail(({ method }) => (isListing(method) ? { code: -32_601, message: "Method not found" } : undefined));
  second.alter((method, _params, result) => (isListing(method) ? (result as object[]).slice(1) : result));
  second.fault.fail(({ method, params }) => {
    const { minContextSlot } = (params[1] ?? {}) as { minContextSlot?: number };
    return isListing(method) && minContextSlot
      ? { code: -32_016, message: "Minimum context slot has not been reached" }
      : undefined;
  });
  for (let call = 0; call < 3; call += 1) await fixture.submit();
  expect(await signedFor(paymentId)).toBe(0);
  for (const { alter, fault } of [first, second]) {
    alter(undefined);
    fault.fail(undefined);
  }
  await solana.knobs.resume();
  await fixture.watchUntilState(paymentId, "succeeded");
});

test("a transfer that waited is sent while its blockhash is valid, also when one endpoint says that it is not", async () => {
  const { paymentId } = await makeAccepted();
  await solana.knobs.pause();
  fixture.clock.advance(MINUTE);
  refuseBlockhashes(first);
  await submitUntilSigned(paymentId);
  await solana.knobs.resume();
  await fixture.watchUntilState(paymentId, "succeeded");
});

test.each([
  ["says whether its blockhash is valid", "isBlockhashValid"],
  ["lists the transactions that may name it", "getSignaturesForAddress"],
])("a transfer that waited is not signed while no endpoint %s, and is sent afterwards", async (_what, of) => {
  const { paymentId } = await makeAccepted();
  await solana.knobs.pause();
  fixture.clock.advance(MINUTE);
  for (const { fault } of [first, second])
    fault.fail(({ method }) => (method === of ? { code: -32_601, message: "Method not found" } : undefined));
  await fixture.submit();
  expect(await signedFor(paymentId)).toBe(0);
  for (const { fault } of [first, second]) fault.fail(undefined);
  await submitUntilSigned(paymentId);
  await solana.knobs.resume();
  await fixture.watchUntilState(paymentId, "succeeded");
});

/** Makes the first endpoint report a last height of blockhashes that is far too high. */
function raiseLastHeights(): void {
  first.alter((method, _params, result) => {
    if (method !== "getLatestBlockhash") return result;
    const { context, value } = result as { context: object; value: { lastValidBlockHeight: number } };
    return { context, value: { ...value, lastValidBlockHeight: value.lastValidBlockHeight + 1_000_000 } };
  });
}

test("a payment that was never sent expires although one endpoint reported a last height that is far too high", async () => {
  raiseLastHeights();
  const { paymentId } = await makeAccepted();
  first.alter(undefined);
  await solana.knobs.jump(LIFETIME);
  fixture.clock.advance(2 * MINUTE);
  await fixture.submit();
  await watchLater();
  expect(await signedFor(paymentId)).toBe(0);
  // Endpoints may be some minutes behind and not know the blockhash yet.
  expect(await stateOf(paymentId)).toBe("processing");
  fixture.clock.advance(4 * MINUTE);
  await watchLater({ passes: 3 });
  expect(await stateOf(paymentId)).toBe("expired");
});

test("a payment that was never sent does not end because one endpoint says for long that its blockhash is not valid", async () => {
  const { paymentId } = await makeAccepted();
  await solana.knobs.pause();
  refuseBlockhashes(first);
  fixture.clock.advance(6 * MINUTE);
  for (let pass = 0; pass < 3; pass += 1) await fixture.watch();
  expect(await stateOf(paymentId)).toBe("processing");
  await submitUntilSigned(paymentId);
  await solana.knobs.resume();
  await fixture.watchUntilState(paymentId, "succeeded");
});

test.each([
  { when: "when its blockhash has expired", slots: LIFETIME, minutes: 1 },
  { when: "long afterwards, whatever last height was reported", slots: 9_000, minutes: 6, isRaised: true },
  { when: "after a stop of some minutes in which slots took longer than usual", slots: 1_500, minutes: 6 },
])(
  "a payment that was never sent does not end $when, before the history is listed that may show its buyer's own transfer",
  async ({ slots, minutes, isRaised }) => {
    const before = await exceptions();
    if (isRaised) raiseLastHeights();
    const { paymentId, payBeside } = await makeAccepted();
    await fixture.readHistory();
    await payBeside();
    await solana.knobs.jump(slots);
    fixture.clock.advance(minutes * MINUTE);
    await watchLater({ reads: false, passes: 3 });
    expect(await stateOf(paymentId)).toBe("processing");
    await fixture.watchUntilState(paymentId, "succeeded");
    expect(await exceptions()).toBe(before);
  },
);
