import { describe, expect, test } from "vitest";
import { splitRequests } from "../../../payments/payouts/request-payouts.ts";
import { MAX_DEPOSITS, MAX_PAYOUTS, type PayoutRequest } from "../../../signer/protocol.ts";
import { findFundsRefusal, findLimitRefusal, findRefundRefusal } from "../../../signer/rules.ts";

describe("limits", () => {
  const limits = {
    perPayout: 100n,
    perMerchantDay: 150n,
    newMerchantPerDay: 50n,
    newMerchantsPerDay: 120n,
    perHour: 200n,
  };
  const amounts = { amount: 40n, increase: 40n, assetHour: 0n, merchantDay: 0n, newMerchantsDay: undefined };

  test.each([
    ["within every limit", {}, undefined],
    ["exactly at the limit of one payout", { amount: 100n, increase: 100n }, undefined],
    ["above the limit of one payout", { amount: 101n, increase: 101n }, "limit_payout"],
    ["exactly at the merchant's limit of the day", { merchantDay: 110n }, undefined],
    ["above the merchant's limit of the day", { merchantDay: 111n }, "limit_merchant_day"],
    ["above the lower limit of a new merchant", { merchantDay: 11n, newMerchantsDay: 11n }, "limit_merchant_day"],
    ["exactly at the limit of all new merchants together", { newMerchantsDay: 80n }, undefined],
    ["above the limit of all new merchants together", { newMerchantsDay: 81n }, "limit_new_merchants_day"],
    ["above the asset's limit of the hour", { assetHour: 161n }, "limit_asset_hour"],
    ["without a merchant", { merchantDay: undefined, assetHour: 160n }, undefined],
    [
      "signed before, whatever was signed since",
      { increase: 0n, assetHour: 500n, merchantDay: 500n, newMerchantsDay: 500n },
      undefined,
    ],
    ["signed before for less", { increase: 1n, assetHour: 200n }, "limit_asset_hour"],
  ])("a payout %s", (_what, change, expected) => {
    expect(findLimitRefusal(limits, { ...amounts, ...change })).toBe(expected);
  });
});

describe("funds", () => {
  const usdc = (amount: bigint) => ({ amount, decimals: 6 });
  const dai = (amount: bigint) => ({ amount, decimals: 18 });

  test.each([
    ["cover a payout exactly", [usdc(5n)], [usdc(2n)], usdc(3n), undefined],
    ["are short by one unit", [usdc(5n)], [usdc(2n)], usdc(4n), "funds_short"],
    ["in an asset with other decimals cover it", [dai(5_000_000_000_000n)], [], usdc(5n), undefined],
    ["in an asset with other decimals are short", [dai(4_999_999_999_999n)], [], usdc(5n), "funds_short"],
    ["of several assets add up", [usdc(2n), dai(3_000_000_000_000n)], [usdc(1n)], usdc(4n), undefined],
    ["that are overdrawn allow what was signed before", [usdc(1n)], [usdc(1n)], usdc(0n), undefined],
  ])("that %s", (_what, deposits, payouts, increase, expected) => {
    expect(findFundsRefusal({ deposits, payouts, increase })).toBe(expected);
  });
});

describe("a refund", () => {
  const deposits = [
    { payer: "0xa", amount: 5n },
    { payer: "0xb", amount: 3n },
  ];

  const signed = (nonce: string, receiver: string, amount: bigint, counted = amount) => ({
    nonce,
    receiver,
    amount,
    counted,
  });
  const refund = (receiver: string, amount: bigint, increase = amount) => ({
    nonce: "0x2",
    receiver,
    amount,
    increase,
  });

  test.each([
    ["to a payer, of all that they paid", refund("0xa", 5n), [], undefined],
    ["above what the receiver paid, within what others paid", refund("0xb", 4n), [], "receiver_not_payer"],
    ["above what earlier refunds have left", refund("0xa", 2n), [signed("0x1", "0xa", 4n)], "receiver_not_payer"],
    ["above all deposits", refund("0xa", 9n), [], "funds_short"],
    ["of what earlier refunds have left", refund("0xa", 1n), [signed("0x1", "0xa", 4n)], undefined],
    ["to one payer after a refund to another", refund("0xa", 5n), [signed("0x1", "0xb", 3n)], undefined],
    ["of all deposits while one was signed too high", refund("0xa", 1n), [signed("0x1", "0xb", 8n)], "funds_short"],
    ["that was signed for another payer", refund("0xb", 5n, 0n), [signed("0x2", "0xa", 5n)], "receiver_not_payer"],
    [
      "beside one that was raised",
      refund("0xa", 2n),
      [signed("0x1", "0xa", 1n), signed("0x1", "0xa", 3n, 2n)],
      undefined,
    ],
    ["once more", refund("0xa", 5n, 0n), [signed("0x2", "0xa", 5n)], undefined],
    ["to an account that did not pay", refund("0xc", 1n), [], "receiver_not_payer"],
  ])("%s", (_what, of, refunds, expected) => {
    expect(findRefundRefusal(of, deposits, refunds)).toBe(expected);
  });
});

describe("requests", () => {
  const request = (deposits: number): PayoutRequest => ({
    kind: "settlement",
    merchantId: "mrch_1",
    asset: "eip155:1/erc20:0x01",
    number: 1,
    amount: 1n,
    receiver: "0x02",
    deposits: Array.from({ length: deposits }, (_, logIndex) => ({
      asset: "eip155:1/erc20:0x01",
      merchantId: "mrch_1",
      paymentId: "pay_1",
      txHash: "0x03",
      logIndex,
    })),
  });
  const sizes = (requests: PayoutRequest[]) => splitRequests(requests).map((batch) => batch.length);

  test("one request carries 100 payouts with a deposit each", () => {
    expect(sizes(Array.from({ length: 100 }, () => request(1)))).toEqual([100]);
  });

  test("payouts are divided when a request would exceed the protocol's limits", () => {
    expect(sizes(Array.from({ length: MAX_PAYOUTS + 1 }, () => request(0)))).toEqual([MAX_PAYOUTS, 1]);
    expect(sizes([request(MAX_DEPOSITS), request(1), request(MAX_DEPOSITS - 1), request(1)])).toEqual([1, 2, 1]);
  });
});
