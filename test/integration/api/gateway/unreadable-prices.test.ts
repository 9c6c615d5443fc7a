import { expect, test } from "vitest";
import { en } from "../../../../api/checkout/texts/en.ts";
import { makeMerchant, makePayment, startApi } from "../start-api.ts";

const feed = `0x${"fe".repeat(20)}`;
const source = { base: "iso4217/EUR", quote: "iso4217/USD", chain: "eip155:31337", feed, maxAgeSeconds: 3_600 };
const api = await startApi({ prices: [source] });

test("a price that no endpoint returns is a 503 of creation and options with the time after which to retry", async () => {
  const merchant = await makeMerchant(api, { mode: "live" });
  const amount = { unit: "iso4217/EUR", value: "500" };
  const created = await api.post("/v1/payments", merchant.headers, { amount });
  expect(created).toMatchObject({ status: 503, body: { code: "chain_unavailable" } });
  expect(created.headers.get("retry-after")).toBe("5");

  // A payment that was created while the price could be read.
  const id = await makePayment(api, merchant);
  await api.db.updateTable("payment").set({ unit: "iso4217/EUR" }).where("id", "=", id).execute();
  const accounts = [`eip155:31337:0x${"ab".repeat(20)}`];
  const options = await api.post(`/v1/gateway/payment/${id}/options`, merchant.wallet, { accounts });
  expect(options).toMatchObject({ status: 503, body: { code: "chain_unavailable" } });
  expect(options.headers.get("retry-after")).toBe("5");
  const fromPage = await api.post(`/checkout/${id}/options`, {}, { accounts });
  expect(fromPage).toMatchObject({ status: 503, body: { code: "chain_unavailable" } });
  const page = await (await fetch(`${api.url}/${id}`)).text();
  expect(page).toContain("USDC");
  expect(page).not.toContain(`<title>${en.unpayableTitle}`);
});
