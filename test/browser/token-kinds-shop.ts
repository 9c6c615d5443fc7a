import { randomUUID } from "node:crypto";
import { privateKeyToAccount } from "viem/accounts";
import { ask } from "../../local/buyer-client.ts";
import { newKey } from "../../local/networks-document.ts";
import { startFleet } from "../support/fleet.ts";
import { mintTestToken, startTokenKinds } from "../support/token-kinds.ts";
import { installWallets, type WalletPlan } from "./fake-evm-wallets.ts";
import { openPage } from "./open-browser.ts";

/** Opens a fleet whose shop accepts tokens that buyers approve, permit or send. */
export async function openTokenKindsShop() {
  const kinds = await startTokenKinds();
  const { chain, assets } = kinds;
  const fleet = await startFleet({ chain, change: kinds.change, workers: 1, ownUrl: true });
  const { shop } = fleet;
  const settlements = [assets.permit, assets.zeroFirst, assets.push].map((asset) => ({
    asset,
    destination: `${chain.id}:${fleet.destination}`,
  }));
  const path = `/v1/merchants/${shop.caller.merchantId}/settlements/crypto`;
  await ask(shop, "POST", path, { settlements }, { "idempotency-key": randomUUID() });

  /** Opens the page of a new payment whose buyer holds one kind of token, and gas. */
  async function open(asset: string, more: Partial<WalletPlan> = {}) {
    const account = privateKeyToAccount(newKey().privateKey);
    await mintTestToken(chain, asset, account.address);
    await chain.client.setBalance({ address: account.address, value: 10n ** 18n });
    const amount = { unit: "iso4217/USD", value: "100" };
    const { id } = (await ask(shop, "POST", "/v1/payments", { amount })) as { id: string };
    const opened = await openPage(fleet.baseUrl);
    const plan: WalletPlan = { name: "Beta", account, ...more };
    const calls = await installWallets(opened.context, chain, [plan]);
    const link = `${fleet.baseUrl}/?pid=${id}`;
    await opened.page.goto(link);
    const choose = async () => {
      await opened.page.getByRole("button", { name: "Beta" }).click();
      await opened.page.getByRole("button", { name: "1.00 " }).click();
    };
    const acts = () => calls.map(({ method }) => method).filter((method) => /sign|send|switch/i.test(method));
    return { ...opened, id, link, choose, acts, plan, account };
  }
  return { chain, assets, fleet, open };
}
