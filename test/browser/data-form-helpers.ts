import { addPolicy } from "../../payments/buyer-data/collection-policies.ts";
import { makeMerchant, makePayment } from "../integration/api/start-api.ts";
import { testActor } from "../support/test-actor.ts";
import { waitFor } from "../support/wait-for.ts";
import { openShop, shopUrls } from "./browser-shop.ts";
import { openPage } from "./open-browser.ts";

type Opened = Awaited<ReturnType<typeof openPage>>;
type Option = { id: string; actions: [{ data: { params: [string, string] } }]; collectData: { url: string } | null };

/** Opens a shop that requires buyer data, and whose buyers pay from `account` (CAIP-10). */
export async function openShopWithDataPolicy(account: string, options: Parameters<typeof openShop>[0] = {}) {
  const shop = await openShop(options);
  const { api, merchant } = shop;
  const requireData = (merchantId: string) =>
    addPolicy(api.deps, { actor: testActor, merchantId, asset: null, unit: null, minimum: null });
  await requireData(merchant.merchantId);
  return {
    ...shop,
    /** Creates a payment that requires buyer data, and returns the URL of its data page. */
    async ask(of = merchant) {
      const id = await makePayment(api, of, { referenceId: "order-17", checkout: shopUrls });
      const { body } = await api.post(`/v1/gateway/payment/${id}/options`, of.wallet, { accounts: [account] });
      const [option] = body["options"] as [Option];
      if (!option.collectData) throw new Error("the option requires no buyer data");
      return { id, option, url: option.collectData.url };
    },
    /** Creates a merchant of another account with the same policy. */
    async makeOther() {
      const other = await makeMerchant(api);
      await requireData(other.merchantId);
      return other;
    },
    /** Opens the data page in a browser. */
    async open(url: string, options: Parameters<typeof openPage>[1] = {}): Promise<Opened> {
      const opened = await openPage(api.url, options);
      await opened.page.goto(url);
      return opened;
    },
  };
}

/** The page, or the frame of a page, that holds the form. */
type Place = { page: Opened["page"]; form?: Pick<Opened["page"], "getByLabel" | "getByRole"> };

/** Fills in the form by keyboard alone. */
export async function fillIn({ page, form = page }: Place, name = "Zoë Ångström-Quux"): Promise<void> {
  await form.getByLabel("Full name").focus();
  await page.keyboard.insertText(name);
  for (const part of ["28", "2", "1990"]) {
    await page.keyboard.press("Tab");
    await page.keyboard.insertText(part);
  }
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  // The browser forgets typed letters after a second, which may be less than a slow machine takes for the next one.
  await waitFor(
    async () => {
      await page.keyboard.type("Swe");
      return (await form.getByRole("combobox").inputValue()) === "SE";
    },
    { within: 20_000, every: 1_200, what: "Sweden is chosen" },
  );
  await page.keyboard.press("Tab");
  await page.keyboard.insertText("Uppsala 17");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
}

export const send = ({ page, form = page }: Place) => form.getByRole("button", { name: "Continue" }).press("Enter");
export const done = ({ page, form = page }: Place) => form.getByRole("heading", { name: "Done", level: 1 }).waitFor();

/** The message that wallets receive when the data is stored. */
export const OK = { type: "IC_COMPLETE", success: true };
