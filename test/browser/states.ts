import type { PaymentState } from "../../db/states.ts";
import { addPolicy } from "../../payments/policies.ts";
import { makeMerchant, makePayment } from "../rooms/api/start-api.ts";
import { bring, type OpenShop } from "./shop.ts";

export const states: readonly PaymentState[] = [
  "requires_action",
  "processing",
  "succeeded",
  "failed",
  "expired",
  "cancelled",
];

/**
 * Every page there is, by name: a link of ours that shows it. Payments without a shop, so that none leaves. With
 * `iconUrl` the merchants give that as their logo.
 */
export async function makePages(
  { api }: Pick<OpenShop, "api">,
  iconUrl?: string,
): Promise<{ name: string; path: string }[]> {
  const open = async (...how: Parameters<typeof makeMerchant>[1][]) => {
    const merchant = await makeMerchant(api, ...how);
    if (iconUrl) {
      const given = await api.patch(`/v1/merchants/${merchant.merchantId}`, merchant.headers, { iconUrl });
      if (given.status !== 200) throw new Error(`no logo: ${JSON.stringify(given.body)}`);
    }
    return merchant;
  };
  const merchant = await open();
  const pages: { name: string; path: string }[] = [];
  for (const state of states) {
    const id = await makePayment(api, merchant, { referenceId: "order-17" });
    await bring(api, id, state);
    pages.push({ name: state, path: `/?pid=${id}` });
  }
  const id = await makePayment(api, await open({ mode: "live" }), { referenceId: "order-17" });
  pages.push({ name: "requires_action live", path: `/?pid=${id}` });
  pages.push({ name: "not found", path: "/?pid=pay_none" });

  const asking = await open();
  await addPolicy(api.deps, { merchantId: asking.merchantId, asset: null, unit: null, minimum: null });
  const asked = await makePayment(api, asking);
  const { body } = await api.post(`/v1/gateway/payment/${asked}/options`, asking.wallet, {
    accounts: [`eip155:31337:0x${"c1".repeat(20)}`],
  });
  const [option] = body.options as [{ id: string }];
  pages.push({ name: "data", path: `/collect/${asked}/${option.id}?theme=` });
  pages.push({ name: "data ended", path: `/collect/${asked}/opt_none?theme=` });
  return pages;
}
