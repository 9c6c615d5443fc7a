import type { Hex, PrivateKeyAccount } from "viem";
import { expect, test } from "vitest";
import { encodeTransfer } from "../../../../chains/evm/eip3009.ts";
import { deriveNonce, paymentKey } from "../../../../chains/natural-key.ts";
import { readEvmRow } from "../../../../db/chain-families.ts";
import { openDb } from "../../../../db/open.ts";
import type { NewOption } from "../../../../db/queries/payment-options.ts";
import { listActions } from "../../../../payments/options/list-options.ts";
import { toAuthorization } from "../../../../transfers/evm/authorization-calls.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { fundBuyer, usdcBalance } from "../../../support/evm-chain.ts";
import { signOption, unwrap } from "../../../support/merchant-fixture.ts";
import { createEuroPayment, startQuotes } from "../../../support/quote-fixture.ts";
import { relayByThirdParty } from "../../../support/transfers-fixture.ts";

// A thief who has the api's database login writes quotes, and confirms them by the public API.

const { chain, assets, setPrice, makeMerchant } = await startQuotes();
const UNIT = 1_000_000n;
await setPrice(120n);
const fixture = await makeMerchant([assets.usdc, assets.zeroFirst]);
const asApi = openDb(await roleUrl(fixture.databaseUrl, "api"), { max: 2 });
addCleanup(() => asApi.destroy());

type Forged = Partial<Omit<NewOption, "allowance">>;

/** Writes a quote with other values beside the genuine one of a buyer, as the api can. Returns its id. */
async function forge(paymentId: string, buyer: PrivateKeyAccount, change: Forged): Promise<string> {
  const [genuine] = await fixture.offer(paymentId, buyer);
  const row = await asApi
    .selectFrom("payment_option")
    .selectAll()
    .where("id", "=", genuine?.id ?? "")
    .executeTakeFirstOrThrow();
  const { allowance: _none, ...members } = row;
  const id = change.id ?? `opt_${"f".repeat(24)}${row.id.slice(-8)}`;
  await asApi
    .insertInto("payment_option")
    .values({ ...members, id, number: row.number + 1, ...change } as never)
    .execute();
  return id;
}

async function sign(paymentId: string, optionId: string, buyer: PrivateKeyAccount) {
  const { actions } = unwrap(await listActions(fixture.deps, { paymentId, mode: fixture.mode, optionId, data: "" }));
  return signOption({ actions } as Parameters<typeof signOption>[0], buyer, chain);
}

/** Signs a quote as its buyer, and relays the authorization as a third party. */
async function relaySigned(paymentId: string, optionId: string, buyer: PrivateKeyAccount): Promise<void> {
  const [signed] = await sign(paymentId, optionId, buyer);
  const quote = fixture.db.selectFrom("payment_option").selectAll().where("id", "=", optionId);
  const authorization = toAuthorization(readEvmRow(await quote.executeTakeFirstOrThrow()));
  await relayByThirdParty(chain, encodeTransfer(authorization, signed?.data[0] as Hex));
}

const alarms = async () => {
  const { values } = await fixture.deps.metrics.quoteContradictions.get();
  return values.reduce((sum, { value }) => sum + value, 0);
};

test.each<[string, Forged]>([
  ["for one minor unit", { amount: 1n }],
  ["for one minor unit less", { amount: 1_000n * 10_000n - 1n }],
  ["that credits its merchant with more", { owed_asset: assets.zeroFirst, owed_amount: 10n ** 30n }],
  ["in a token of the thief", { token: `0x${"ab".repeat(20)}` }],
  ["with the nonce of another payment", { authorization_nonce: `0x${"cd".repeat(32)}` }],
])("a live payment of ten dollars does not succeed by a quote %s", async (_what, change) => {
  const before = await alarms();
  const buyer = await fundBuyer(chain, 100n * UNIT);
  const paymentId = await fixture.create(1_000n);
  const optionId = await forge(paymentId, buyer, change);
  const results = await sign(paymentId, optionId, buyer);
  const { attemptId } = unwrap(await fixture.confirm(paymentId, optionId, results));
  await fixture.verify(attemptId ?? "");
  expect(await fixture.verificationResult(attemptId ?? "")).toMatchObject({
    refused: expect.stringContaining("withdrawn"),
  });
  expect((await fixture.status(paymentId)).state).toBe("requires_action");
  expect((await fixture.transfers()).filter((one) => one.payment_id === paymentId)).toEqual([]);
  expect(await alarms()).toBe(before + 1);
  // The genuine quote still pays.
  await fixture.verify(await fixture.attempt(paymentId, buyer));
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.status(paymentId)).toMatchObject({ state: "succeeded" });
});

test("money that names a payment and was sent by a forged quote is an exception, and does not pay it", async () => {
  const buyer = await fundBuyer(chain, 100n * UNIT);
  const paymentId = await fixture.create(1_000n);
  const optionId = await forge(paymentId, buyer, { amount: 2n });
  const before = await usdcBalance(chain, chain.keys.treasury.address);
  await relaySigned(paymentId, optionId, buyer);
  await fixture.watch();
  expect(await usdcBalance(chain, chain.keys.treasury.address)).toBe(before + 2n);
  expect((await fixture.status(paymentId)).state).toBe("requires_action");
  const booked = await fixture.db
    .selectFrom("ledger_entry")
    .select("amount")
    .where("account", "=", "exceptions")
    .where("amount", "=", -2n)
    .execute();
  expect(booked).toHaveLength(1);
});

test("money pays by the genuine quote when a forged one asks for the same transfer and credits the merchant with more", async () => {
  const buyer = await fundBuyer(chain, 100n * UNIT);
  const paymentId = await fixture.create(1_000n);
  const optionId = await forge(paymentId, buyer, { owed_asset: assets.zeroFirst, owed_amount: 10n ** 30n });
  await relaySigned(paymentId, optionId, buyer);
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await fixture.settlementOf(paymentId)).toMatchObject({ asset: assets.usdc, amount: 10n * UNIT });
});

test("a payment in another currency is paid by a quote five percent below the price, and by none below that", async () => {
  const buyer = await fundBuyer(chain, 100n * UNIT);
  const paymentId = await createEuroPayment(fixture);
  const verifyForged = async (amount: bigint, digit: string) => {
    const id = await forge(paymentId, buyer, { id: `opt_${digit.repeat(32)}`, amount, number: Number(digit) });
    const { attemptId } = unwrap(await fixture.confirm(paymentId, id, await sign(paymentId, id, buyer)));
    await fixture.verify(attemptId ?? "");
    return fixture.verificationResult(attemptId ?? "");
  };
  const least = (12n * UNIT * 95n) / 100n;
  expect(await verifyForged(least - 1n, "2")).toMatchObject({ refused: expect.stringContaining("withdrawn") });
  expect((await fixture.status(paymentId)).state).toBe("requires_action");
  expect(await verifyForged(least, "3")).toBe("verified");
});

test("a quote without a price does not pay a payment in another currency, and none pays one in a currency without a feed", async () => {
  const buyer = await fundBuyer(chain, 100n * UNIT);
  const paymentId = await createEuroPayment(fixture);
  const optionId = await forge(paymentId, buyer, { rate: null, quoted_until: null });
  const { attemptId } = unwrap(await fixture.confirm(paymentId, optionId, await sign(paymentId, optionId, buyer)));
  await fixture.verify(attemptId ?? "");
  expect(await fixture.verificationResult(attemptId ?? "")).toMatchObject({
    refused: expect.stringContaining("withdrawn"),
  });

  const other = await createEuroPayment(fixture);
  await fixture.db.updateTable("payment").set({ unit: "iso4217/CHF" }).where("id", "=", other).execute();
  const [option] = await asApi.selectFrom("payment_option").selectAll().where("payment_id", "=", paymentId).execute();
  const { allowance: _none, ...members } = option as NonNullable<typeof option>;
  const nonce = deriveNonce(
    fixture.deps.networks.deployment,
    paymentKey({ merchantId: fixture.merchantId, paymentId: other }),
  );
  const forged = { ...members, id: `opt_${"9".repeat(32)}`, payment_id: other, authorization_nonce: nonce };
  await asApi
    .insertInto("payment_option")
    .values({ ...forged, rate: "mine", quoted_until: new Date("2999-01-01") } as never)
    .execute();
  const second = unwrap(await fixture.confirm(other, forged.id, await sign(other, forged.id, buyer)));
  await fixture.verify(second.attemptId ?? "");
  expect(await fixture.verificationResult(second.attemptId ?? "")).toMatchObject({
    refused: expect.stringContaining("withdrawn"),
  });
  expect((await fixture.status(other)).state).toBe("requires_action");
});
