import type { Page } from "playwright-core";
import { shown, type View, type ViewMerchants } from "./page-view.ts";
import { answer } from "./wallet-fakes.ts";

/** The data that a wallet passes to the data page. */
const person = {
  fullName: "Zoë Ångström-Quux",
  dob: "1990-02-28",
  porCountry: "SE",
  porAddress: "Storgatan 17\nUppsala",
};

/** Returns the views of the data page in all its states. */
export async function makeDataViews({ makeDataPagePath }: ViewMerchants): Promise<View[]> {
  const prefilled = async (): Promise<string> => {
    const prefill = Buffer.from(JSON.stringify(person)).toString("base64url");
    return `${await makeDataPagePath()}?prefill=${prefill}`;
  };
  const handIn = async (page: Page): Promise<void> => {
    await page.locator("#tos").check();
    await page.locator("#send").click();
  };
  const failing = (status: number, code: string) => (page: Page) =>
    answer(page, "**/collect/*", { code, message: "" }, status);
  const path = await makeDataPagePath();
  return [
    { name: "data", caption: "the data page", path },
    { name: "data-prefilled", caption: "the data page, prefilled by the wallet", path: await prefilled() },
    {
      name: "data-faults",
      caption: "the data page with errors, in the summary and at the field",
      path,
      reach: async (page) => {
        await page.locator("#send").click();
        await shown(page, "#summary");
      },
    },
    {
      name: "data-unsaved",
      caption: "the details could not be saved",
      path: await prefilled(),
      before: failing(503, "internal_error"),
      reach: async (page) => {
        await handIn(page);
        await shown(page, "#save-error");
      },
    },
    {
      name: "data-done",
      caption: "the details are saved",
      path: await prefilled(),
      before: (page) => answer(page, "**/collect/*", {}),
      reach: async (page) => {
        await handIn(page);
        await shown(page, "#done");
      },
    },
    { name: "data-ended", caption: "the details are no longer needed", path: path.replace(/[^/]+$/, "opt_none") },
  ];
}
