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

describe("renewed quotes", () => {
  test.each([
    ["a 6-decimal to an 18-decimal asset", assets.usdc, assets.zeroFirst, 12n * 10n ** 18n],
    ["an 18-decimal to a 6-decimal asset", assets.zeroFirst, assets.usdc, 12n * UNIT],
  ])("a quote renewed after take-others moved from %s is settled in the new asset's units", async (_how, from, to, owed) => {
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

  test("a quote renewed while the previous quote's attempt is being verified does not change the signed amount", async () => {
    const proxy = await startFaultProxy({ target: chain.url });
    const till = await makeMerchant([assets.usdc], { rpcUrls: [proxy.url] });
    await setTakesOthers(till, assets.usdc, true);
    await setPrice(120n);
    const buyer = await makeBuyer(assets.permit);
    const paymentId = await askEuros(till);
    const attemptId = await till.attempt(paymentId, buyer);
    till.clock.advance(PAST_QUOTE_MS);
    await setPrice(150n);
    let verified: Promise<void> | undefined;
    // The renewal starts before the attempt is verified and is written afterwards.
    proxy.onAnswer(async (method) => {
      if (method !== "eth_call" || verified) return;
      verified = till.verify(attemptId);
      await verified;
    });
    await till.offer(paymentId, buyer);
    expect(await till.verdict(attemptId)).toBe("verified");
    await till.relay();
    await till.watch();
    expect((await till.status(paymentId)).info?.optionAmount.value).toBe(12n * UNIT);
    expect((await till.settlementOf(paymentId)).amount).toBe(12n * UNIT);
    expect(await booked(till, `payable:${till.merchantId}`, assets.usdc)).toBe(-12n * UNIT);
  });

  test("a push mined shortly after its quote expired still pays, even if the quote has been renewed", async () => {
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

  test("a confirm accepted before its quote expired stays valid after a renewal", async () => {
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

  test("a quote renewed after `direct` is switched off is paid to the treasury with the whole fee", async () => {
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

  test("a quote renewed after `direct` is switched on is paid to the destination without a fee", async () => {
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

  test("a quote renewed after the buyer's approval does not invalidate a confirm of the earlier option", async () => {
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

  test("a renewed quote does not reopen a refused confirm of an expired quote", async () => {
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
