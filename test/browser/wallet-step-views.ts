import type { Page } from "playwright-core";
import { waitFor } from "../support/wait-for.ts";
import { makePath, shopUrls, shown, type View, type ViewMerchants } from "./page-view.ts";
import {
  announceWallet,
  answer,
  changeOptions,
  chooseOption,
  connectWallet,
  neverRespond,
  sending,
  type WalletResponses,
} from "./wallet-fakes.ts";

/** What the page holds for its script. */
type Data = { texts: { noWalletHere: string } };

const SIGN = "eth_signTypedData_v4";
const SEND = "eth_sendTransaction";
const CHAIN = "eth_chainId";
const SWITCH_CHAIN = "wallet_switchEthereumChain";

/** Returns the views of a payment with a wallet in the buyer's browser. */
export async function makeWalletStepViews(merchants: ViewMerchants): Promise<View[]> {
  const dataUrl = new URL(await merchants.makeDataPagePath(), merchants.shop.baseUrl).href;
  const path = await makePath(merchants, [], { checkout: shopUrls });
  const showsProblem = (page: Page) => shown(page, "#problem");
  const step = (page: Page) => shown(page, "#step");
  const underway = (page: Page) => shown(page, ".underway #step");
  /** Chooses the option; the wallet responds as given, and the page shows the result. */
  const paying =
    (responses: WalletResponses, until = step) =>
    async (page: Page) => {
      await chooseOption(page, responses);
      await until(page);
    };
  const twoSteps = (page: Page) =>
    changeOptions(page, ({ options }) => {
      for (const option of options) option.actions.unshift(sending);
    });
  const sent = (page: Page) =>
    changeOptions(page, ({ options }) => {
      for (const option of options) option.actions = [sending];
    });
  const signed = { [SIGN]: { value: `0x${"11".repeat(65)}` } };
  const hash = { [SEND]: { value: `0x${"5e".repeat(32)}` } };
  const elsewhere = { [CHAIN]: { value: "0x1" } };
  const views: Omit<View, "path">[] = [
    {
      name: "searching",
      caption: "searching for wallets",
      on: "computer",
      before: (page) => page.route("**/assets/*.js", (route) => route.abort()),
    },
    {
      name: "no-wallet",
      caption: "this browser has no wallet",
      on: "computer",
      reach: async (page) => {
        const { texts } = JSON.parse((await page.locator("#data").textContent()) ?? "") as Data;
        await page.locator("#searching").filter({ hasText: texts.noWalletHere }).waitFor({ state: "attached" });
      },
    },
    { name: "wallet", caption: "a wallet was found", reach: announceWallet },
    {
      name: "copied",
      caption: "the link was copied",
      reach: async (page) => {
        await page.locator("#copy").click();
        // The announcement stays, while the button shows its own text again after three seconds.
        await page.locator("#announcement:not(:empty)").waitFor({ state: "attached" });
      },
    },
    {
      name: "connecting",
      caption: "the wallet asks for permission to connect",
      reach: async (page) => {
        await announceWallet(page, { eth_requestAccounts: "waits" });
        await page.getByRole("button", { name: "Orange Wallet" }).click();
        await step(page);
      },
    },
    { name: "choose", caption: "a wallet is connected: choose how to pay", reach: connectWallet },
    {
      name: "needs-data",
      caption: "the shop requires buyer data",
      before: (page) =>
        changeOptions(page, ({ options }) => {
          for (const option of options) option.collectUrl = dataUrl;
        }),
      reach: async (page) => {
        await connectWallet(page);
        await waitForNewText(page, "#step", () => page.locator("#choices .main").first().click());
      },
    },
    {
      name: "no-option",
      caption: "the wallet's balance is too low",
      before: (page) => answer(page, "**/options", { options: [] }),
      reach: async (page) => {
        await announceWallet(page);
        await page.getByRole("button", { name: "Orange Wallet" }).click();
        await showsProblem(page);
      },
    },
    {
      name: "switching",
      caption: "the wallet asks for permission to change the network",
      reach: paying({ ...elsewhere, [SWITCH_CHAIN]: "waits" }),
    },
    {
      name: "wrong-network",
      caption: "the wallet did not change the network",
      reach: paying({ ...elsewhere, [SWITCH_CHAIN]: { value: null } }, showsProblem),
    },
    { name: "approve", caption: "waiting for approval in the wallet", reach: paying({ [SIGN]: "waits" }) },
    { name: "step-one", caption: "step 1 of 2", before: twoSteps, reach: paying({ [SEND]: "waits" }) },
    {
      name: "step-underway",
      caption: "step 1 of 2 is pending",
      before: twoSteps,
      reach: paying({ ...hash, eth_getTransactionReceipt: { value: null } }),
    },
    {
      name: "handing-in",
      caption: "the approval is being verified",
      before: (page) => neverRespond(page, "**/confirm"),
      reach: paying(signed),
    },
    { name: "declined", caption: "the buyer declined in the wallet", reach: paying({}, showsProblem) },
    {
      name: "answer-open",
      caption: "the wallet has another request open",
      reach: paying({ [SIGN]: { code: -32002 } }, showsProblem),
    },
    {
      name: "refused",
      caption: "the payment was not accepted",
      before: (page) => answer(page, "**/confirm", { code: "insufficient_funds", message: "" }, 400),
      reach: paying(signed, showsProblem),
    },
    {
      name: "already-paying",
      caption: "another tab is paying already",
      before: (page) => answer(page, "**/confirm", { code: "invalid_state", message: "" }, 409),
      reach: paying(signed, underway),
    },
    {
      name: "wallet-unclear",
      caption: "the wallet reports an error, but may have sent the money",
      before: sent,
      reach: paying({ [SEND]: { code: -32_603 } }, (page) => shown(page, ".underway #problem")),
    },
    {
      name: "sent-unclear",
      caption: "sent, but the payment was not accepted",
      before: async (page) => {
        await sent(page);
        await answer(page, "**/confirm", { code: "invalid_params", message: "" }, 400);
      },
      reach: paying(hash, underway),
    },
    {
      name: "unpayable",
      caption: "no option can pay the payment any more",
      before: (page) => answer(page, "**/options", { options: [], unpayable: "none" }),
      reach: async (page) => {
        await announceWallet(page);
        await page.getByRole("button", { name: "Orange Wallet" }).click();
        await shown(page, "#unpayable");
      },
    },
  ];
  return views.map((view) => ({ ...view, path }));
}

/** Waits until `act` has changed the text of an element. */
async function waitForNewText(page: Page, selector: string, act: () => Promise<void>): Promise<void> {
  const before = await page.locator(selector).textContent();
  await act();
  // The test polls from outside: the pages' policy does not allow polling inside the page.
  const what = `another text in ${selector}`;
  await waitFor(async () => (await page.locator(selector).textContent()) !== before, { within: 20_000, what });
}
