import { type PrivateKeyAccount, parseEther } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { listBalances } from "../../../db/balances.ts";
import { newKey } from "../../../ops/local/networks-document.ts";
import { setFee } from "../../../payments/fees.ts";
import { fundBuyer, usdcBalance } from "../../support/chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { mintTestToken, testTokenBalance } from "../../support/kinds.ts";
import { askEuros, PAST_QUOTE_MS, setDirect, setTakesOthers, startQuotes } from "../../support/quotes.ts";
import { signOption, type Till, walletActions } from "../../support/till.ts";

const { chain, assets, setPrice, makeMerchant } = await startQuotes();
const UNIT = 1_000_000n;

async function makeBuyer(asset: string): Promise<PrivateKeyAccount> {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, asset, buyer.address);
  await chain.client.setBalance({ address: buyer.address, value: parseEther("1") });
  return buyer;
}
async function offerOne(till: Till, paymentId: string, buyer: { address: string }) {
  const [option] = await till.offer(paymentId, buyer);
  if (!option) throw new Error("there is no way to pay");
  return option;
}
async function finish(till: Till, attemptId: string) {
  await till.verify(attemptId);
  expect(await till.verdict(attemptId)).toBe("verified");
  await till.relay();
  await till.watch();
}
const booked = async (till: Till, account: string, asset: string) =>
  (await listBalances(till.db, { account, asset }))[0]?.amount ?? 0n;

describe("a quote that is renewed", () => {
  test.each([
    ["a 6- to an 18-decimals asset", assets.usdc, assets.zeroFirst, 12n * 10n ** 18n],
    ["an 18- to a 6-decimals asset", assets.zeroFirst, assets.usdc, 12n * UNIT],
  ])("after take-others has moved from %s is owed in the new asset's own units", async (_how, from, to, owed) => {
    const till = await makeMerchant([assets.usdc, assets.zeroFirst]);
    await setPrice(120n);
    await setTakesOthers(till, from, true);
    const buyer = await makeBuyer(assets.permit);
    const paymentId = await askEuros(till);
    await offerOne(till, paymentId, buyer);
    await setTakesOthers(till, from, false);
    await setTakesOthers(till, to, true);
    till.clock.advance(PAST_QUOTE_MS);
    await finish(till, await till.attempt(paymentId, buyer));
    expect((await till.status(paymentId)).info?.optionAmount.value).toBe(12n * UNIT);
    expect(await till.settlementOf(paymentId)).toMatchObject({ asset: to, amount: owed, converted: true });
    expect(await booked(till, `payable:${till.merchantId}`, to)).toBe(-owed);
  });

  test("while the attempt of the quote before it is accepted leaves that payment as it was signed", async () => {
    const proxy = await startFaultProxy({ target: chain.url });
    const till = await makeMerchant([assets.usdc], { rpcUrls: [proxy.url] });
    await setTakesOthers(till, assets.usdc, true);
    await setPrice(120n);
    const buyer = await makeBuyer(assets.permit);
    const paymentId = await askEuros(till);
    const attemptId = await till.attempt(paymentId, buyer);
    till.clock.advance(PAST_QUOTE_MS);
    await setPrice(150n);
    let accepted: Promise<void> | undefined;
    // Asked for before the attempt is accepted, and written afterwards.
    proxy.onAnswer(async (method) => {
      if (method !== "eth_call" || accepted) return;
      accepted = till.verify(attemptId);
      await accepted;
    });
    await till.offer(paymentId, buyer);
    expect(await till.verdict(attemptId)).toBe("verified");
    await till.relay();
    await till.watch();
    expect((await till.status(paymentId)).info?.optionAmount.value).toBe(12n * UNIT);
    expect((await till.settlementOf(paymentId)).amount).toBe(12n * UNIT);
    expect(await booked(till, `payable:${till.merchantId}`, assets.usdc)).toBe(-12n * UNIT);
  });

  test("for anyone with the link leaves the money of a push that came just after its quote with the payment", async () => {
    const till = await makeMerchant([assets.push]);
    await setPrice(120n);
    const buyer = await makeBuyer(assets.push);
    const paymentId = await askEuros(till);
    await signOption(await offerOne(till, paymentId, buyer), buyer, chain);
    till.clock.advance(PAST_QUOTE_MS);
    await setPrice(150n);
    expect((await offerOne(till, paymentId, buyer)).amount.value).toBe(15n * UNIT);
    await till.watch();
    expect(await till.status(paymentId)).toMatchObject({
      state: "succeeded",
      info: { optionAmount: { value: 12n * UNIT } },
    });
    expect(await booked(till, "exceptions", assets.push)).toBe(0n);
    expect((await till.settlementOf(paymentId)).amount).toBe(12n * UNIT);
  });

  test("leaves a confirm that was taken within its quote as good as it was", async () => {
    const till = await makeMerchant([assets.usdc]);
    await setPrice(120n);
    const buyer = await fundBuyer(chain);
    const paymentId = await askEuros(till);
    const attemptId = await till.attempt(paymentId, buyer);
    till.clock.advance(PAST_QUOTE_MS);
    await setPrice(150n);
    expect((await offerOne(till, paymentId, buyer)).amount.value).toBe(15n * UNIT);
    await finish(till, attemptId);
    expect(await till.status(paymentId)).toMatchObject({
      state: "succeeded",
      info: { optionAmount: { value: 12n * UNIT } },
    });
  });

  test("when `direct` has been switched off is paid to the treasury, with the whole fee", async () => {
    const till = await makeMerchant([assets.usdc]);
    await setFee(till.deps, { accountId: till.accountId, merchantId: null, points: 500, fixedMicros: 0n });
    await setDirect(till, assets.usdc, true);
    await setPrice(120n);
    const buyer = await fundBuyer(chain);
    const paymentId = await askEuros(till);
    await offerOne(till, paymentId, buyer);
    await setDirect(till, assets.usdc, false);
    till.clock.advance(PAST_QUOTE_MS);
    await finish(till, await till.attempt(paymentId, buyer));
    expect(await usdcBalance(chain, till.destination)).toBe(0n);
    expect(await booked(till, "fees", assets.usdc)).toBe(-600_000n);
    expect(await till.settlementOf(paymentId)).toMatchObject({ state: "due", amount: 11_400_000n });
  });

  test("when `direct` has been switched on is paid to the destination, without a fee", async () => {
    const till = await makeMerchant([assets.usdc]);
    await setFee(till.deps, { accountId: till.accountId, merchantId: null, points: 500, fixedMicros: 0n });
    await setPrice(120n);
    const buyer = await fundBuyer(chain);
    const paymentId = await askEuros(till);
    await offerOne(till, paymentId, buyer);
    await setDirect(till, assets.usdc, true);
    till.clock.advance(PAST_QUOTE_MS);
    await finish(till, await till.attempt(paymentId, buyer));
    expect(await usdcBalance(chain, till.destination)).toBe(12n * UNIT);
    expect(await booked(till, "fees", assets.usdc)).toBe(0n);
    expect(await till.settlementOf(paymentId)).toMatchObject({ state: "paid", amount: 12n * UNIT });
  });

  test("because the buyer has approved meanwhile leaves the confirm of what was shown before as good as it was", async () => {
    const till = await makeMerchant([assets.zeroFirst]);
    const buyer = await makeBuyer(assets.zeroFirst);
    await mintTestToken(chain, assets.zeroFirst, buyer.address, 10n ** 18n);
    const paymentId = await till.create(100n);
    const option = await offerOne(till, paymentId, buyer);
    expect(walletActions(option).map(({ method }) => method)).toEqual(["eth_sendTransaction", "eth_signTypedData_v4"]);
    const results = await signOption(option, buyer, chain);
    expect(walletActions(await offerOne(till, paymentId, buyer))).toHaveLength(1);
    const confirmed = await till.confirm(paymentId, option.id, results);
    expect(confirmed).toMatchObject({ ok: true });
    await finish(till, confirmed.ok ? (confirmed.value.attemptId ?? "") : "");
    expect(await testTokenBalance(chain, assets.zeroFirst, buyer.address)).toBe(1_000n * UNIT);
  });

  test("does not bring back a refused confirm of the quote before it", async () => {
    const till = await makeMerchant([assets.usdc]);
    await setPrice(120n);
    const buyer = await fundBuyer(chain, 12n * UNIT);
    const paymentId = await askEuros(till);
    const option = await offerOne(till, paymentId, buyer);
    const results = await signOption(option, buyer);
    const other = await till.create(100n);
    await finish(till, await till.attempt(other, buyer));
    const first = await till.confirm(paymentId, option.id, results);
    await till.verify(first.ok ? (first.value.attemptId ?? "") : "");
    expect(await till.verdict(first.ok ? (first.value.attemptId ?? "") : "")).toMatchObject({
      refused: expect.any(String),
    });
    till.clock.advance(PAST_QUOTE_MS);
    expect(await till.confirm(paymentId, option.id, results)).toMatchObject({ ok: false, code: "quote_expired" });
  });
});
