import { type Hex, type PrivateKeyAccount, parseEther } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { fundBuyer, sendUsdc } from "../../../support/evm-chain.ts";
import { unwrap, walletActions } from "../../../support/merchant-fixture.ts";
import { createEuroPayment, startQuotes } from "../../../support/quote-fixture.ts";
import { mintTestToken } from "../../../support/token-kinds.ts";

// A buyer holds what they have confirmed at a price back, and decides later whether to pay it.

const { chain, assets, setPrice, makeMerchant } = await startQuotes();
await setPrice(120n);
const UNIT = 1_000_000n;
const HOUR_MS = 3_600_000;
/** From the creation of a quote until its money pays nothing, milliseconds. */
const QUOTE_MS = 12 * 60_000;
const GRACE_MS = 10 * 60_000;
const inHours = (now: Date, hours: number) => ({ expiresAt: new Date(now.getTime() + hours * HOUR_MS) });

test("an authorization at a price ends soon after the price, and one that needs no price after the deadline", async () => {
  const fixture = await makeMerchant([assets.usdc]);
  const { clock } = fixture;
  const [buyer, other] = [await fundBuyer(chain, 20n * UNIT), await fundBuyer(chain, 100n * UNIT)];
  const paymentId = await createEuroPayment(fixture, inHours(clock.now(), 23));
  const created = clock.now().getTime();
  await fixture.verify(await fixture.attempt(paymentId, buyer));
  await sendUsdc(chain, buyer, other.address, 20n * UNIT);
  await fixture.relay();
  expect((await fixture.status(paymentId)).state).toBe("processing");
  const [{ valid_before: end } = {}] = await fixture.transfers();
  // The chain is final within one block of a second.
  expect((end ?? 0) * 1_000 - created).toBeLessThan(QUOTE_MS + GRACE_MS + 30_000);
  expect((end ?? 0) * 1_000 - created).toBeGreaterThan(QUOTE_MS + GRACE_MS - 30_000);
  // A payment that needs no price keeps the whole time.
  const unpriced = await fixture.create(1n, inHours(clock.now(), 23));
  const rich = await fundBuyer(chain);
  await fixture.verify(await fixture.attempt(unpriced, rich));
  const ends = (await fixture.transfers()).map(({ valid_before }) => (valid_before ?? 0) * 1_000 - created);
  expect(Math.max(...ends)).toBeGreaterThan(23 * HOUR_MS);
});

test.each([
  ["one that was refused", true, 60_000],
  ["one that waits", false, 0],
])(
  "a push that reaches a block after the end of its price is late, by a confirm that is %s",
  async (_what, isRefused, afterMs) => {
    const { fixture, clock, paymentId, attemptId, fill } = await holdPush();
    clock.advance(QUOTE_MS + afterMs + 1_000);
    if (isRefused) {
      await fixture.verify(attemptId);
      expect(await fixture.verificationResult(attemptId)).toMatchObject({ refused: "the transaction is in no block" });
    }
    await fill(clock.now());
    await fixture.watch();
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("requires_action");
    // The chain has the money of other tests, too.
    const found = (await listExceptions(fixture.deps, 10)).filter((one) => one.paymentId === paymentId);
    expect(found).toMatchObject([{ kind: "late", amount: 12n * UNIT }]);
  },
);

test("a confirmed push is refused when its block is later than the end of its price, and else pays", async () => {
  const late = await holdPush();
  late.clock.advance(QUOTE_MS + 5_000);
  await late.fill(late.clock.now());
  await late.fixture.verify(late.attemptId);
  expect(await late.fixture.verificationResult(late.attemptId)).toMatchObject({
    refused: expect.stringContaining("after the end of its quote"),
  });

  const inTime = await holdPush();
  inTime.clock.advance(QUOTE_MS - 30_000);
  await inTime.fill(inTime.clock.now());
  inTime.clock.advance(HOUR_MS);
  await inTime.fixture.verify(inTime.attemptId);
  expect(await inTime.fixture.verificationResult(inTime.attemptId)).toBe("verified");
  await inTime.fixture.watch();
  expect((await inTime.fixture.status(inTime.paymentId)).state).toBe("succeeded");
});

/** Confirms a push that waits in the pool because its nonce leaves a gap. `fill` closes the gap in a block of the given time. */
async function holdPush() {
  const fixture = await makeMerchant([assets.push]);
  const { clock } = fixture;
  const { timestamp } = await chain.client.getBlock();
  // Blocks of earlier tests lie in the future.
  clock.advance(Math.max(0, Number(timestamp) * 1_000 - clock.now().getTime()));
  const buyer = await makeBuyer();
  const paymentId = await createEuroPayment(fixture, inHours(clock.now(), 20));
  const [option] = await fixture.offer(paymentId, buyer);
  const [action] = option ? walletActions(option) : [];
  if (!option || action?.method !== "eth_sendTransaction") throw new Error("no push is offered");
  const { to, data } = action.params[0] as { to: Hex; data: Hex };
  const nonce = await chain.client.getTransactionCount({ address: buyer.address });
  const push = { account: buyer, to, data, nonce: nonce + 1, gas: 200_000n };
  const hash = await chain.client.sendTransaction(push);
  const results = [{ type: "walletRpc" as const, data: [hash] }];
  const { attemptId } = unwrap(await fixture.confirm(paymentId, option.id, results));
  await fixture.verify(attemptId ?? "");
  expect(await fixture.verificationResult(attemptId ?? "")).toBe("waiting");
  const fill = async (at: Date) => {
    await chain.client.setNextBlockTimestamp({ timestamp: BigInt(Math.floor(at.getTime() / 1_000)) });
    const gap = await chain.client.sendTransaction({ account: buyer, to: buyer.address, value: 0n, nonce });
    await chain.client.waitForTransactionReceipt({ hash: gap });
    await chain.client.waitForTransactionReceipt({ hash });
  };
  return { fixture, clock, paymentId, attemptId: attemptId ?? "", fill };
}

async function makeBuyer(): Promise<PrivateKeyAccount> {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.push, buyer.address);
  await chain.client.setBalance({ address: buyer.address, value: parseEther("1") });
  return buyer;
}
