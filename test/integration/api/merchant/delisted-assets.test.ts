import { expect, test } from "vitest";
import { writeAssetUnits } from "../../../../db/queries/asset-units.ts";
import { parseNetworks } from "../../../../runtime/networks/read-networks.ts";
import { inRealTime } from "../../../support/in-real-time.ts";
import { asset, makeMerchant, makePayment, networksDocument, startApi } from "../start-api.ts";

/** Starts an api that shares a database and counters with another one, and whose networks file lacks the first asset. */
function startWithoutAsset(api: Awaited<ReturnType<typeof startApi>>) {
  const chains = networksDocument.chains.map((entry) => {
    return { ...entry, assets: entry.assets.filter((one) => one.asset !== asset) };
  });
  const networks = parseNetworks({ ...networksDocument, chains });
  return startApi({ databaseUrl: api.databaseUrl, redisPrefix: api.prefix, networks });
}

const listing = await startApi();
// As a worker does when it starts.
await writeAssetUnits(listing.db, [{ asset, symbol: "USDC", decimals: 6 }]);
const merchant = await makeMerchant(listing);
const { headers } = merchant;
const amount = { unit: `caip19/${asset}`, value: "12500000" };
const id = await makePayment(listing, merchant, { amount });
await listing.post(`/v1/payments/${id}/simulate`, headers, { status: "succeeded" });
const refund = await listing.post("/v1/refunds", headers, { paymentId: id });
const delisting = await startWithoutAsset(listing);
const display = { assetSymbol: "USDC", decimals: 6, networkName: "Local" };
const shown = { ...amount, display };

test("a payment in an asset that has left the networks file keeps the asset's symbol and decimals", async () => {
  const info = { optionAmount: shown };
  expect((await delisting.get(`/v1/payments/${id}/status`, headers)).body).toMatchObject({ info });
  expect((await delisting.get(`/v1/payments/${id}`, headers)).body).toMatchObject({ amount: shown, info });
  expect((await delisting.get(`/v1/gateway/payment/${id}`, merchant.wallet)).body).toMatchObject({ amount: shown });
  expect(await (await fetch(`${delisting.url}/?pid=${id}`)).text()).toContain("12.50 USDC");
});

test("lists, their totals and their filter count such a payment as before", async () => {
  const list = async (query: string) => (await delisting.get(`/v1/payments${query}`, headers)).body;
  const found = {
    data: [{ tokenAmount: shown }],
    stats: { totalRevenue: [{ amount: 12.5, currency: "USDC" }], totalTransactions: 1 },
  };
  expect(await list("")).toMatchObject(found);
  expect(await list("?token_symbol=USDC")).toMatchObject(found);
  expect(await list("?token_symbol=USDX")).toMatchObject({ data: [] });
});

test("a refund of such a payment keeps the asset's symbol and decimals", async () => {
  expect((await delisting.get(`/v1/refunds/${refund.body["refundId"]}`, headers)).body).toMatchObject({
    amount: shown,
  });
  expect((await delisting.get("/v1/refunds", headers)).body).toMatchObject({ data: [{ amount: shown }] });
});

test("reading such a payment takes no more statements than before", inRealTime, async () => {
  const countFewest = async (api: typeof listing) => {
    const counts: number[] = [];
    for (let pass = 0; pass < 6; pass += 1) {
      const before = api.statements.count;
      await api.get(`/v1/payments/${id}`, headers);
      counts.push(api.statements.count - before);
    }
    return Math.min(...counts);
  };
  expect(await countFewest(delisting)).toBe(await countFewest(listing));
});
