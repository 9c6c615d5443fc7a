import { type PrivateKeyAccount, parseEther } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import type { Token } from "../../../../chains/chain.ts";
import { writeAssetUnits } from "../../../../db/queries/asset-units.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { signOption } from "../../../support/merchant-fixture.ts";
import { acceptOtherAssets, startQuotes } from "../../../support/quote-fixture.ts";
import { mintTestToken } from "../../../support/token-kinds.ts";

const { chain, assets, makeMerchant } = await startQuotes();
/** Ten dollars in the owed asset, which has 18 decimals. */
const OWED = 10n ** 19n;

/** Requests ten dollars as a push of an asset with six decimals, which the merchant is owed in one with 18. */
async function requestPush() {
  const fixture = await makeMerchant([assets.zeroFirst]);
  await acceptOtherAssets(fixture, assets.zeroFirst, true);
  // As a worker does when it starts.
  await writeAssetUnits(fixture.db, [{ asset: assets.zeroFirst, symbol: "ZRF", decimals: 18 }]);
  const buyer = await makeBuyer();
  const paymentId = await fixture.create(1_000n);
  const [option] = await fixture.offer(paymentId, buyer);
  if (!option) throw new Error("there is no way to pay");
  const delist = () => {
    const tokens = fixture.deps.chains.get(chain.id)?.tokens as Map<string, Token>;
    tokens.delete(assets.zeroFirst);
  };
  const alarms = async () => {
    const { values } = await fixture.deps.metrics.quoteContradictions.get();
    return values.reduce((sum, { value }) => sum + value, 0);
  };
  return { fixture, paymentId, option, buyer, delist, alarms };
}

async function makeBuyer(): Promise<PrivateKeyAccount> {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.push, buyer.address);
  await chain.client.setBalance({ address: buyer.address, value: parseEther("1") });
  return buyer;
}

test("a push pays when the asset that its merchant is owed has left the networks file meanwhile", async () => {
  const { fixture, paymentId, option, buyer, delist, alarms } = await requestPush();
  await signOption(option, buyer, chain);
  delist();
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await fixture.settlementOf(paymentId)).toMatchObject({ asset: assets.zeroFirst, amount: OWED });
  expect(await alarms()).toBe(0);
});

test("a confirmed push pays when the asset that its merchant is owed leaves the networks file before its verification", async () => {
  const { fixture, paymentId, option, buyer, delist, alarms } = await requestPush();
  const results = await signOption(option, buyer, chain);
  const confirmed = await fixture.confirm(paymentId, option.id, results);
  const attemptId = confirmed.ok ? (confirmed.value.attemptId ?? "") : "";
  delist();
  await fixture.verify(attemptId);
  expect(await fixture.verificationResult(attemptId)).toBe("verified");
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await alarms()).toBe(0);
});

test("an option is withdrawn when the asset that its merchant would be owed leaves the networks file", async () => {
  const { fixture, paymentId, option, buyer, delist } = await requestPush();
  const results = await signOption(option, buyer, chain);
  delist();
  expect(await fixture.confirm(paymentId, option.id, results)).toMatchObject({ ok: false, code: "quote_expired" });
});

test("a forged quote does not credit its merchant with more of an asset that is not in the networks file", async () => {
  const { fixture, paymentId, option, buyer, delist, alarms } = await requestPush();
  await signOption(option, buyer, chain);
  const row = await fixture.db
    .selectFrom("payment_option")
    .selectAll()
    .where("id", "=", option.id)
    .executeTakeFirstOrThrow();
  const { allowance: _none, ...members } = row;
  await fixture.db
    .insertInto("payment_option")
    .values({ ...members, id: `opt_${"f".repeat(32)}`, number: row.number + 1, owed_amount: OWED + 1n } as never)
    .execute();
  delist();
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect((await fixture.settlementOf(paymentId)).amount).toBe(OWED);
  expect(await alarms()).toBe(1);
});
