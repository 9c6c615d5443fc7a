import { expect, test } from "vitest";
import { ask } from "../../ops/local/wallet.ts";
import { fundBuyer, startChain, transfersTo } from "../support/chain.ts";
import { startFleet } from "../support/fleet.ts";
import { none, openPage } from "./browser.ts";
import { scan } from "./scan.ts";
import { payByApp } from "./wallet-app.ts";

const chain = await startChain();
const fleet = await startFleet({ chain, workers: 1, ownUrl: true });

test("a wallet app that scans the code pays its link, and the open page follows to the end", async () => {
  const amount = { unit: "iso4217/USD", value: "1250" };
  const { id } = (await ask(fleet.shop, "POST", "/v1/payments", { amount })) as { id: string };
  const { page, misdeeds } = await openPage(fleet.baseUrl);
  await page.goto(`${fleet.baseUrl}/?pid=${id}`);
  const buyer = await fundBuyer(chain);
  const link = (await scan(page)) ?? "";
  const told = await payByApp(fleet.shop, link, `${chain.id}:${buyer.address}`, async ({ method, params }) => {
    expect(method).toBe("eth_signTypedData_v4");
    const { types, ...rest } = JSON.parse(params[1] as string);
    const { EIP712Domain: _, ...own } = types;
    return buyer.signTypedData({ ...rest, types: own });
  });
  expect(told).toBe("succeeded");
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor({ timeout: 2_000 });
  expect(await transfersTo(chain, chain.keys.treasury.address)).toMatchObject([
    { args: { from: buyer.address, value: 12_500_000n } },
  ]);
  expect(misdeeds).toEqual(none);
});
