import type { Mode } from "../../db/tables.ts";
import type { Shop } from "../../local/buyer-client.ts";
import { addPolicy } from "../../payments/buyer-data/collection-policies.ts";
import { type Api, makeMerchant, makePayment } from "../integration/api/start-api.ts";
import { testActor } from "../support/test-actor.ts";
import type { ViewMerchants } from "./page-view.ts";

/** Creates the merchants of the views: a shop in each mode, and one that requires buyer data. `iconUrl` is their logo. */
export async function openViewMerchants(api: Api, iconUrl?: string): Promise<ViewMerchants> {
  const open = async (mode: Mode): Promise<Shop> => {
    const { key, wallet, merchantId, headers } = await makeMerchant(api, { mode });
    if (iconUrl) {
      const { status } = await api.patch(`/v1/merchants/${merchantId}`, headers, { iconUrl });
      if (status !== 200) throw new Error(`the logo was refused with ${status}`);
    }
    return { baseUrl: api.url, caller: { apiKey: key, appId: wallet["app-id"], merchantId } };
  };
  const asking = await makeMerchant(api);
  await addPolicy(api.deps, {
    actor: testActor,
    merchantId: asking.merchantId,
    asset: null,
    unit: null,
    minimum: null,
  });
  const makeDataPagePath = async (): Promise<string> => {
    const id = await makePayment(api, asking);
    const { body } = await api.post(`/v1/gateway/payment/${id}/options`, asking.wallet, {
      accounts: [`eip155:31337:0x${"c1".repeat(20)}`],
    });
    const [option] = body["options"] as [{ collectData: { url: string } }];
    return new URL(option.collectData.url).pathname;
  };
  return { shop: await open("test"), live: await open("live"), makeDataPagePath };
}
