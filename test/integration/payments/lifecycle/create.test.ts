import { describe, expect, test } from "vitest";
import { findPaymentView } from "../../../../payments/lifecycle/read-payment.ts";
import { createAccount } from "../../../../payments/merchants/accounts.ts";
import { addDestinations } from "../../../../payments/merchants/destinations.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { createPayment } from "../../../support/create-payment.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const caller = { accountId: fixture.accountId, mode: "live" as const, scopes: [] };
const usd = { unit: "iso4217/USD", value: 100n };
const create = (more: object = {}) =>
  createPayment(fixture.deps, { caller, merchantId: fixture.merchantId, amount: usd, ...more });
const inMs = (ms: number) => new Date(fixture.deps.now().getTime() + ms);
const countPayments = async () => (await fixture.db.selectFrom("payment").select("id").execute()).length;

describe("payment creation", () => {
  test("a new payment lives for five minutes by default, and has no job while it waits", async () => {
    const view = unwrap(await create());
    expect(view).toMatchObject({ state: "requires_action", stateVersion: 0, info: null, failureCode: null });
    const lifetime = view.expiresAt.getTime() - view.createdAt.getTime();
    expect(lifetime).toBe(300_000);
    expect(fixture.enqueued).toEqual([]);
  });

  test("a payment lives until the deadline that the merchant sets, capped at one day", async () => {
    const deadline = inMs(3_600_000);
    expect(unwrap(await create({ expiresAt: deadline })).expiresAt).toEqual(deadline);
    const cut = unwrap(await create({ expiresAt: inMs(30 * 86_400_000) }));
    expect(cut.expiresAt.getTime() - cut.createdAt.getTime()).toBe(86_400_000);
  });

  test.each([
    ["a deadline that has passed", { expiresAt: new Date(0) }, "params_validation", "expiresAt"],
    ["an unknown currency", { amount: { unit: "iso4217/XYZ", value: 1n } }, "params_validation", "amount.unit"],
    ["an unknown kind of unit", { amount: { unit: "USD", value: 1n } }, "params_validation", "amount.unit"],
    ["a malformed asset", { amount: { unit: "caip19/usdc", value: 1n } }, "params_validation", "amount.unit"],
    ["an unknown merchant", { merchantId: "mrch_0" }, "merchant_not_found", "merchant"],
  ])("a payment with %s is refused with the reason, and nothing is written", async (_what, more, code, message) => {
    const before = await countPayments();
    const enqueued = fixture.enqueued.length;
    expect(await create(more)).toMatchObject({ ok: false, code, message: expect.stringContaining(message) });
    expect(await countPayments()).toBe(before);
    expect(fixture.enqueued).toHaveLength(enqueued);
  });

  test("a payment for a merchant of another account or mode is refused as merchant_not_found", async () => {
    const { id: accountId } = await createAccount(fixture.deps, { actor: testActor, name: "Other" });
    const stranger = { ...caller, accountId };
    expect(await create({ caller: stranger })).toMatchObject({ code: "merchant_not_found" });
    expect(await create({ caller: { ...caller, mode: "test" } })).toMatchObject({ code: "merchant_not_found" });
  });

  test("a payment is visible only to its own mode, account and merchant", async () => {
    const { paymentId } = unwrap(await create());
    const merchant = { accountId: fixture.accountId, merchantId: fixture.merchantId };
    expect(await findPaymentView(fixture.deps, { paymentId, mode: "live", merchant })).toMatchObject({ ok: true });
    const others = [
      { paymentId, mode: "test" as const },
      { paymentId, mode: "live" as const, merchant: { ...merchant, merchantId: "mrch_0" } },
      { paymentId, mode: "live" as const, merchant: { ...merchant, accountId: "acct_0" } },
    ];
    for (const query of others)
      expect(await findPaymentView(fixture.deps, query)).toMatchObject({ code: "payment_not_found" });
  });
});

describe("settlement destinations", () => {
  const add = async (settlements: { asset: string; destination: string }[]) => {
    const whom = { accountId: fixture.accountId, mode: "live" as const, name: "Shop", email: "shop@example.test" };
    const { id: merchantId } = await createMerchant(fixture.deps, { ...whom, actor: testActor });
    const result = await addDestinations(fixture.deps, {
      actor: testActor,
      accountId: fixture.accountId,
      mode: "live",
      merchantId,
      settlements,
    });
    const rows = await fixture.db
      .selectFrom("settlement_destination")
      .selectAll()
      .where("merchant_id", "=", merchantId)
      .execute();
    return { result, rows, merchantId };
  };
  const valid = { asset: chain.asset, destination: `${chain.id}:0x${"d1".repeat(20)}` };

  test("a second destination for the same asset in any spelling is a conflict, and none of the request is stored", async () => {
    const { merchantId, rows } = await add([valid]);
    expect(rows).toHaveLength(1);
    const other = { asset: `${chain.id}/erc20:0x${"77".repeat(20)}`, destination: valid.destination };
    const shouted = {
      ...valid,
      asset: valid.asset.replace(/0x[0-9a-f]{40}/, (token) => `0x${token.slice(2).toUpperCase()}`),
    };
    const refused = await addDestinations(fixture.deps, {
      actor: testActor,
      accountId: fixture.accountId,
      mode: "live",
      merchantId,
      settlements: [other, shouted],
    });
    expect(refused).toMatchObject({ ok: false, code: "settlement_asset_conflict" });
    const kept = await fixture.db
      .selectFrom("settlement_destination")
      .select("asset")
      .where("merchant_id", "=", merchantId)
      .execute();
    expect(kept).toEqual([{ asset: chain.asset }]);
    expect((await add([valid, valid])).rows).toEqual([]);
  });

  test.each([
    ["a malformed asset", { asset: "usdc" }, "settlements.1.asset"],
    ["a malformed account", { destination: "0x12" }, "settlements.1.destination"],
    ["an account on another chain", { destination: `eip155:1:0x${"d1".repeat(20)}` }, "settlements.1.destination"],
    ["a short address", { destination: `${chain.id}:0x12` }, "settlements.1.destination"],
    ["the zero address", { destination: `${chain.id}:0x${"0".repeat(40)}` }, "settlements.1.destination"],
    ["the token itself", { destination: `${chain.id}:${chain.asset.split(":").at(-1)}` }, "settlements.1.destination"],
  ])("%s is refused with the name of its entry, and none of the request is stored", async (_what, bad, named) => {
    const fine = { asset: `${chain.id}/erc20:0x${"88".repeat(20)}`, destination: valid.destination };
    const { result, rows } = await add([fine, { ...valid, ...bad }]);
    expect(result).toMatchObject({ ok: false, code: "params_validation", message: expect.stringContaining(named) });
    expect(rows).toEqual([]);
  });
});
