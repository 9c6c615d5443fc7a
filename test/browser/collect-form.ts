import { addPolicy } from "../../payments/policies.ts";
import { makeMerchant, makePayment } from "../rooms/api/start-api.ts";
import { openPage } from "./browser.ts";
import { openShop, shopUrls } from "./shop.ts";

type Opened = Awaited<ReturnType<typeof openPage>>;
type Option = { id: string; actions: [{ data: { params: [string, string] } }]; collectData: { url: string } | null };

/** A shop that has to know who pays, and whose buyers pay from an account (CAIP-10). */
export async function openAskingShop(account: string, options: Parameters<typeof openShop>[0] = {}) {
  const shop = await openShop(options);
  const { api, merchant } = shop;
  const askAlways = (merchantId: string) => addPolicy(api.deps, { merchantId, asset: null, unit: null, minimum: null });
  await askAlways(merchant.merchantId);
  return {
    ...shop,
    /** A payment whose buyer is asked, and the page that asks him. */
    async ask(of = merchant) {
      const id = await makePayment(api, of, { referenceId: "order-17", checkout: shopUrls });
      const { body } = await api.post(`/v1/gateway/payment/${id}/options`, of.wallet, { accounts: [account] });
      const [option] = body.options as [Option];
      if (!option.collectData) throw new Error("nothing is asked");
      return { id, option, url: option.collectData.url };
    },
    /** A merchant of another account that has to know the same. */
    async makeOther() {
      const other = await makeMerchant(api);
      await askAlways(other.merchantId);
      return other;
    },
    /** That page in a browser. */
    async open(url: string, options: Parameters<typeof openPage>[1] = {}): Promise<Opened> {
      const opened = await openPage(api.url, options);
      await opened.page.goto(url);
      return opened;
    },
  };
}

/** A page, or a frame of one, in which the form is. */
type Place = { page: Opened["page"]; form?: Pick<Opened["page"], "getByLabel" | "getByRole"> };

/** Fills in what is asked, by keyboard alone. */
export async function fillIn({ page, form = page }: Place, name = "Zoë Ångström-Quux"): Promise<void> {
  await form.getByLabel("Full name").focus();
  await page.keyboard.insertText(name);
  for (const part of ["28", "2", "1990"]) {
    await page.keyboard.press("Tab");
    await page.keyboard.insertText(part);
  }
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.type("Swe");
  await page.keyboard.press("Tab");
  await page.keyboard.insertText("Uppsala 17");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
}

export const send = ({ page, form = page }: Place) => form.getByRole("button", { name: "Continue" }).press("Enter");
export const done = ({ page, form = page }: Place) => form.getByRole("heading", { name: "Done", level: 1 }).waitFor();

/** What wallets are told when it is done. */
export const OK = { type: "IC_COMPLETE", success: true };
