import { type PrivateKeyAccount, parseEther } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { setFee } from "../../../../payments/merchants/fee-policies.ts";
import { fundBuyer, usdcBalance } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { type MerchantFixture, signOption, walletActions } from "../../../support/merchant-fixture.ts";
import {
  acceptOtherAssets,
  createEuroPayment,
  PAST_QUOTE_MS,
  setDirect,
  startQuotes,
} from "../../../support/quote-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { mintTestToken, testTokenBalance } from "../../../support/token-kinds.ts";

const { chain, assets, setPrice, makeMerchant } = await startQuotes();
const UNIT = 1_000_000n;

async function makeBuyer(asset: string): Promise<PrivateKeyAccount> {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, asset, buyer.address);
  await chain.client.setBalance({ address: buyer.address, value: parseEther("1") });
  return buyer;
}
async function offerOne(fixture: MerchantFixture, paymentId: string, buyer: { address: string }) {
  const [option] = await fixture.offer(paymentId, buyer);
  if (!option) throw new Error("there is no way to pay");
  return option;
}
async function finish(fixture: MerchantFixture, attemptId: string) {
  await fixture.verify(attemptId);
  expect(await fixture.verificationResult(attemptId)).toBe("verified");
  await fixture.relay();
  await fixture.watch();
}
const booked = async (fixture: MerchantFixture, account: string, asset: string) =>
  (await listBalances(fixture.db, { account, asset }))[0]?.amount ?? 0n;

describe("renewed quotes", () => {
  test.each([
    ["a 6-decimal to an 18-decimal asset", assets.usdc, assets.zeroFirst, 12n * 10n ** 18n],
    ["an 18-decimal to a 6-decimal asset", assets.zeroFirst, assets.usdc, 12n * UNIT],
  ])(
    "a quote renewed after the destination of other assets moved from %s is settled in the new asset's units",
    async (_how, from, to, owed) => {
      const fixture = await makeMerchant([assets.usdc, assets.zeroFirst]);
      await setPrice(120n);
      await acceptOtherAssets(fixture, from, true);
      const buyer = await makeBuyer(assets.permit);
      const paymentId = await createEuroPayment(fixture);
      await offerOne(fixture, paymentId, buyer);
      await acceptOtherAssets(fixture, from, false);
      await acceptOtherAssets(fixture, to, true);
      fixture.clock.advance(PAST_QUOTE_MS);
      await finish(fixture, await fixture.attempt(paymentId, buyer));
      expect((await fixture.status(paymentId)).info?.optionAmount.value).toBe(12n * UNIT);
      expect(await fixture.settlementOf(paymentId)).toMatchObject({ asset: to, amount: owed, converted: true });
      expect(await booked(fixture, `payable:${fixture.merchantId}`, to)).toBe(-owed);
    },
  );

  test("a quote renewed while the previous quote's attempt is being verified does not change the signed amount", async () => {
    const proxy = await startFaultProxy({ target: chain.url });
    const fixture = await makeMerchant([assets.usdc], { rpcUrls: [proxy.url] });
    await acceptOtherAssets(fixture, assets.usdc, true);
    await setPrice(120n);
    const buyer = await makeBuyer(assets.permit);
    const paymentId = await createEuroPayment(fixture);
    const attemptId = await fixture.attempt(paymentId, buyer);
    fixture.clock.advance(PAST_QUOTE_MS);
    await setPrice(125n);
    let verified: Promise<void> | undefined;
    let calls = 0;
    // The renewal starts before the attempt is verified and is written afterwards. Its first call reads the price, which the
    // verification reads as well.
    proxy.onAnswer(async (method) => {
      if (method !== "eth_call" || verified) return;
      calls += 1;
      if (calls === 1) return;
      verified = fixture.verify(attemptId);
      await verified;
    });
    await fixture.offer(paymentId, buyer);
    expect(await fixture.verificationResult(attemptId)).toBe("verified");
    await fixture.relay();
    await fixture.watch();
    expect((await fixture.status(paymentId)).info?.optionAmount.value).toBe(12n * UNIT);
    expect((await fixture.settlementOf(paymentId)).amount).toBe(12n * UNIT);
    expect(await booked(fixture, `payable:${fixture.merchantId}`, assets.usdc)).toBe(-12n * UNIT);
  });

  test("a push mined shortly after its quote expired still pays, even if the quote has been renewed", async () => {
    const fixture = await makeMerchant([assets.push]);
    await setPrice(120n);
    const buyer = await makeBuyer(assets.push);
    const paymentId = await createEuroPayment(fixture);
    await signOption(await offerOne(fixture, paymentId, buyer), buyer, chain);
    fixture.clock.advance(PAST_QUOTE_MS);
    await setPrice(125n);
    expect((await offerOne(fixture, paymentId, buyer)).amount.value).toBe((125n * UNIT) / 10n);
    await fixture.watch();
    expect(await fixture.status(paymentId)).toMatchObject({
      state: "succeeded",
      info: { optionAmount: { value: 12n * UNIT } },
    });
    expect(await booked(fixture, "exceptions", assets.push)).toBe(0n);
    expect((await fixture.settlementOf(paymentId)).amount).toBe(12n * UNIT);
  });

  test("a confirm accepted before its quote expired stays valid after a renewal", async () => {
    const fixture = await makeMerchant([assets.usdc]);
    await setPrice(120n);
    const buyer = await fundBuyer(chain);
    const paymentId = await createEuroPayment(fixture);
    const attemptId = await fixture.attempt(paymentId, buyer);
    fixture.clock.advance(PAST_QUOTE_MS);
    await setPrice(125n);
    expect((await offerOne(fixture, paymentId, buyer)).amount.value).toBe((125n * UNIT) / 10n);
    await finish(fixture, attemptId);
    expect(await fixture.status(paymentId)).toMatchObject({
      state: "succeeded",
      info: { optionAmount: { value: 12n * UNIT } },
    });
  });

  test("a quote renewed after `direct` is switched off is paid to the treasury with the whole fee", async () => {
    const fixture = await makeMerchant([assets.usdc]);
    await setFee(fixture.deps, {
      actor: testActor,
      accountId: fixture.accountId,
      merchantId: null,
      basisPoints: 500,
      fixedMicros: 0n,
    });
    await setDirect(fixture, assets.usdc, true);
    await setPrice(120n);
    const buyer = await fundBuyer(chain);
    const paymentId = await createEuroPayment(fixture);
    await offerOne(fixture, paymentId, buyer);
    await setDirect(fixture, assets.usdc, false);
    fixture.clock.advance(PAST_QUOTE_MS);
    await finish(fixture, await fixture.attempt(paymentId, buyer));
    expect(await usdcBalance(chain, fixture.destination)).toBe(0n);
    expect(await booked(fixture, "fees", assets.usdc)).toBe(-600_000n);
    expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "due", amount: 11_400_000n });
  });

  test("a quote renewed after `direct` is switched on is paid to the destination without a fee", async () => {
    const fixture = await makeMerchant([assets.usdc]);
    await setFee(fixture.deps, {
      actor: testActor,
      accountId: fixture.accountId,
      merchantId: null,
      basisPoints: 500,
      fixedMicros: 0n,
    });
    await setPrice(120n);
    const buyer = await fundBuyer(chain);
    const paymentId = await createEuroPayment(fixture);
    await offerOne(fixture, paymentId, buyer);
    await setDirect(fixture, assets.usdc, true);
    fixture.clock.advance(PAST_QUOTE_MS);
    await finish(fixture, await fixture.attempt(paymentId, buyer));
    expect(await usdcBalance(chain, fixture.destination)).toBe(12n * UNIT);
    expect(await booked(fixture, "fees", assets.usdc)).toBe(0n);
    expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "paid", amount: 12n * UNIT });
  });

  test("a quote renewed after the buyer's approval does not invalidate a confirm of the earlier option", async () => {
    const fixture = await makeMerchant([assets.zeroFirst]);
    const buyer = await makeBuyer(assets.zeroFirst);
    await mintTestToken(chain, assets.zeroFirst, buyer.address, 10n ** 18n);
    const paymentId = await fixture.create(100n);
    const option = await offerOne(fixture, paymentId, buyer);
    expect(walletActions(option).map(({ method }) => method)).toEqual(["eth_sendTransaction", "eth_signTypedData_v4"]);
    const results = await signOption(option, buyer, chain);
    expect(walletActions(await offerOne(fixture, paymentId, buyer))).toHaveLength(1);
    const confirmed = await fixture.confirm(paymentId, option.id, results);
    expect(confirmed).toMatchObject({ ok: true });
    await finish(fixture, confirmed.ok ? (confirmed.value.attemptId ?? "") : "");
    expect(await testTokenBalance(chain, assets.zeroFirst, buyer.address)).toBe(1_000n * UNIT);
  });

  test("a renewed quote does not reopen a refused confirm of an expired quote", async () => {
    const fixture = await makeMerchant([assets.usdc]);
    await setPrice(120n);
    const buyer = await fundBuyer(chain, 12n * UNIT);
    const paymentId = await createEuroPayment(fixture);
    const option = await offerOne(fixture, paymentId, buyer);
    const results = await signOption(option, buyer);
    const other = await fixture.create(100n);
    await finish(fixture, await fixture.attempt(other, buyer));
    const first = await fixture.confirm(paymentId, option.id, results);
    await fixture.verify(first.ok ? (first.value.attemptId ?? "") : "");
    expect(await fixture.verificationResult(first.ok ? (first.value.attemptId ?? "") : "")).toMatchObject({
      refused: expect.any(String),
    });
    fixture.clock.advance(PAST_QUOTE_MS);
    expect(await fixture.confirm(paymentId, option.id, results)).toMatchObject({ ok: false, code: "quote_expired" });
  });
});
