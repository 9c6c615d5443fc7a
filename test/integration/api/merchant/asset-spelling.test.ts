import { randomUUID } from "node:crypto";
import { getAddress } from "viem";
import { expect, test } from "vitest";
import { setDestinationWait } from "../../../../payments/maintenance/operator-actions.ts";
import { makeApprovalKey, signStatement } from "../../../support/approval-key.ts";
import { testActor } from "../../../support/test-actor.ts";
import { asset, makeMerchant, movePayment, startApi } from "../start-api.ts";

const api = await startApi();
const fresh = () => ({ "idempotency-key": randomUUID() });
const [chain = ""] = asset.split("/");
/** Spells the address of an ERC-20 asset as EIP-55 does, or in upper case. */
const checksummed = (id: string) => id.replace(/0x.*/, (token) => getAddress(token));
const upperCase = (id: string) => id.replace(/0x.*/, (token) => `0x${token.slice(2).toUpperCase()}`);

async function makePaid(shop: Awaited<ReturnType<typeof makeMerchant>>, unit: string): Promise<string> {
  const { body } = await api.post("/v1/payments", shop.headers, { amount: { unit, value: "700" } });
  const id = body["paymentId"] as string;
  await movePayment(api, id, "requires_action", "processing");
  await movePayment(api, id, "processing", "succeeded");
  return id;
}

test("the unit of a payment is returned as it was given, and every spelling of it is one unit", async () => {
  const shop = await makeMerchant(api);
  const units = [asset, checksummed(asset), upperCase(asset)].map((one) => `caip19/${one}`);
  expect(new Set(units).size).toBe(3);
  for (const unit of units) {
    const id = await makePaid(shop, unit);
    const display = expect.objectContaining({ decimals: 6 });
    expect((await api.get(`/v1/payments/${id}`, shop.headers)).body).toMatchObject({ amount: { unit, display } });
  }
  const { body } = await api.get("/v1/merchants/payments", shop.headers);
  const listed = (body["data"] as { fiatAmount: { unit: string } }[]).map(({ fiatAmount }) => fiatAmount.unit);
  expect(listed.toSorted()).toEqual(units.toSorted());
  expect(body["stats"]).toMatchObject({ totalRevenue: [{ amount: 0.0021 }] });
});

test("a refund names its unit in any spelling", async () => {
  const shop = await makeMerchant(api);
  const paymentId = await makePaid(shop, `caip19/${checksummed(asset)}`);
  for (const spelled of [asset, checksummed(asset), upperCase(asset)]) {
    const amount = { unit: `caip19/${spelled}`, value: "100" };
    const headers = { ...shop.headers, ...fresh() };
    expect(await api.post("/v1/refunds", headers, { paymentId, amount })).toMatchObject({
      status: 200,
      body: { amount: { value: "100" } },
    });
  }
});

test("a settlement's asset is returned as it was given, in lists and in changes, and approved in any spelling", async () => {
  const shop = await makeMerchant(api);
  const path = `/v1/merchants/${shop.merchantId}/settlements`;
  const other = checksummed(`${chain}/erc20:0x${"a2".repeat(20)}`);
  const [destination, next] = [`${chain}:0x${"d5".repeat(20)}`, `${chain}:0x${"d6".repeat(20)}`];
  const add = (given: string) =>
    api.post(`${path}/crypto`, { ...shop.headers, ...fresh() }, { settlements: [{ asset: given, destination }] });
  const added = await add(other);
  expect(added).toMatchObject({ status: 201, body: { settlements: [{ asset: other }] } });
  expect(await add(other.toLowerCase())).toMatchObject({ status: 409, body: { code: "settlement_asset_conflict" } });
  const [{ id }] = added.body["settlements"] as [{ id: string }];

  await setDestinationWait(api.deps, { actor: testActor, accountId: shop.accountId, hours: 72 });
  const changed = await api.put(`${path}/crypto/${id}`, shop.headers, { destination: next });
  expect(changed.body).toMatchObject({ asset: other, destination, pendingChange: { destination: next } });
  await setDestinationWait(api.deps, { actor: testActor, accountId: shop.accountId, hours: 0 });
  const key = makeApprovalKey();
  await api.post(`/v1/merchants/${shop.merchantId}/approval-keys`, shop.headers, { publicKey: key.publicKey });
  const { changeId } = changed.body["pendingChange"] as { changeId: string };
  const subject = { action: "approve destination", merchantId: shop.merchantId, asset: other } as const;
  const statement = signStatement(key, { ...subject, receiver: next.replace(`${chain}:`, "") });
  expect(await api.post(`${path}/changes/${changeId}/approve`, shop.headers, { statement })).toMatchObject({
    status: 200,
    body: { asset: other, status: "applied" },
  });
  const listed = (await api.get(path, shop.headers)).body["crypto"];
  expect(listed).toContainEqual({ id, asset: other, destination: next });
  const changes = (await api.get(`${path}/changes`, shop.headers)).body["data"] as { asset: string }[];
  expect(changes.filter((one) => one.asset === other)).toHaveLength(2);
});
