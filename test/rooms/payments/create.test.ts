import { describe, expect, test } from "vitest";
import { createAccount } from "../../../payments/accounts.ts";
import { createPayment } from "../../../payments/create.ts";
import { addDestinations } from "../../../payments/destinations.ts";
import { createMerchant } from "../../../payments/merchants.ts";
import { findPaymentView } from "../../../payments/read.ts";
import { startChain } from "../../support/chain.ts";
import { good, makeTill } from "../../support/till.ts";

const chain = await startChain();
const till = await makeTill(chain);
const caller = { accountId: till.accountId, mode: "live" as const, scopes: [] };
const usd = { unit: "iso4217/USD", value: 100n };
const ask = (more: object = {}) =>
  createPayment(till.deps, { caller, merchantId: till.merchantId, amount: usd, ...more });
const inMs = (ms: number) => new Date(till.deps.now().getTime() + ms);
const countPayments = async () => (await till.db.selectFrom("payment").select("id").execute()).length;

describe("a payment that a merchant asks for", () => {
  test("waits for its buyer for five minutes when nothing else is said, and its job is rung for then", async () => {
    const view = good(await ask());
    expect(view).toMatchObject({ state: "requires_action", stateVersion: 0, info: null, failureCode: null });
    const lifetime = view.expiresAt.getTime() - view.createdAt.getTime();
    expect(lifetime).toBe(300_000);
    expect(till.rung.at(-1)).toMatchObject({ queue: "expire-payment", bell: { delayMs: lifetime } });
  });

  test("lives as long as the merchant says, and a day at most", async () => {
    const wanted = inMs(3_600_000);
    expect(good(await ask({ expiresAt: wanted })).expiresAt).toEqual(wanted);
    const cut = good(await ask({ expiresAt: inMs(30 * 86_400_000) }));
    expect(cut.expiresAt.getTime() - cut.createdAt.getTime()).toBe(86_400_000);
  });

  test.each([
    ["a deadline that has passed", { expiresAt: new Date(0) }, "params_validation", "expiresAt"],
    [
      "a currency that there is not",
      { amount: { unit: "iso4217/XYZ", value: 1n } },
      "params_validation",
      "amount.unit",
    ],
    ["a unit of no known kind", { amount: { unit: "USD", value: 1n } }, "params_validation", "amount.unit"],
    ["an asset that is none", { amount: { unit: "caip19/usdc", value: 1n } }, "params_validation", "amount.unit"],
    ["a merchant that is not there", { merchantId: "mrch_0" }, "merchant_not_found", "merchant"],
  ])("with %s is refused, says why, and nothing is written", async (_what, more, code, message) => {
    const before = await countPayments();
    const rung = till.rung.length;
    expect(await ask(more)).toMatchObject({ ok: false, code, message: expect.stringContaining(message) });
    expect(await countPayments()).toBe(before);
    expect(till.rung).toHaveLength(rung);
  });

  test("for another account's or another mode's merchant is refused as if there were none", async () => {
    const { id: accountId } = await createAccount(till.deps, { name: "Other" });
    const stranger = { ...caller, accountId };
    expect(await ask({ caller: stranger })).toMatchObject({ code: "merchant_not_found" });
    expect(await ask({ caller: { ...caller, mode: "test" } })).toMatchObject({ code: "merchant_not_found" });
  });

  test("is seen by its own mode, account and merchant alone", async () => {
    const { paymentId } = good(await ask());
    const merchant = { accountId: till.accountId, merchantId: till.merchantId };
    expect(await findPaymentView(till.deps, { paymentId, mode: "live", merchant })).toMatchObject({ ok: true });
    const others = [
      { paymentId, mode: "test" as const },
      { paymentId, mode: "live" as const, merchant: { ...merchant, merchantId: "mrch_0" } },
      { paymentId, mode: "live" as const, merchant: { ...merchant, accountId: "acct_0" } },
    ];
    for (const query of others)
      expect(await findPaymentView(till.deps, query)).toMatchObject({ code: "payment_not_found" });
  });
});

describe("where a merchant is paid", () => {
  const add = async (settlements: { asset: string; destination: string }[]) => {
    const whom = { accountId: till.accountId, mode: "live" as const, name: "Shop", email: "shop@example.test" };
    const { id: merchantId } = await createMerchant(till.deps, whom);
    const result = await addDestinations(till.deps, {
      accountId: till.accountId,
      mode: "live",
      merchantId,
      settlements,
    });
    const rows = await till.db
      .selectFrom("settlement_destination")
      .selectAll()
      .where("merchant_id", "=", merchantId)
      .execute();
    return { result, rows, merchantId };
  };
  const good1 = { asset: chain.asset, destination: `${chain.id}:0x${"d1".repeat(20)}` };

  test("is one account per asset: a second one for the same asset is a conflict, in any spelling, all or nothing", async () => {
    const { merchantId, rows } = await add([good1]);
    expect(rows).toHaveLength(1);
    const other = { asset: `${chain.id}/erc20:0x${"77".repeat(20)}`, destination: good1.destination };
    const shouted = {
      ...good1,
      asset: good1.asset.replace(/0x[0-9a-f]{40}/, (token) => `0x${token.slice(2).toUpperCase()}`),
    };
    const again = await addDestinations(till.deps, {
      accountId: till.accountId,
      mode: "live",
      merchantId,
      settlements: [other, shouted],
    });
    expect(again).toMatchObject({ ok: false, code: "settlement_asset_conflict" });
    const kept = await till.db
      .selectFrom("settlement_destination")
      .select("asset")
      .where("merchant_id", "=", merchantId)
      .execute();
    expect(kept).toEqual([{ asset: chain.asset }]);
    expect((await add([good1, good1])).rows).toEqual([]);
  });

  test.each([
    ["no asset", { asset: "usdc" }, "settlements.1.asset"],
    ["no account", { destination: "0x12" }, "settlements.1.destination"],
    ["an account on another chain", { destination: `eip155:1:0x${"d1".repeat(20)}` }, "settlements.1.destination"],
    ["a short address", { destination: `${chain.id}:0x12` }, "settlements.1.destination"],
    ["the zero address", { destination: `${chain.id}:0x${"0".repeat(40)}` }, "settlements.1.destination"],
    ["the token itself", { destination: `${chain.id}:${chain.asset.split(":").at(-1)}` }, "settlements.1.destination"],
  ])("is refused as %s, naming the entry, and the others with it", async (_what, bad, named) => {
    const fine = { asset: `${chain.id}/erc20:0x${"88".repeat(20)}`, destination: good1.destination };
    const { result, rows } = await add([fine, { ...good1, ...bad }]);
    expect(result).toMatchObject({ ok: false, code: "params_validation", message: expect.stringContaining(named) });
    expect(rows).toEqual([]);
  });
});
