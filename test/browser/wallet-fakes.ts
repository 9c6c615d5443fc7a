import type { Page } from "playwright-core";

/** How a wallet responds to a method: with a value, with an EIP-1193 error code, or never. */
type WalletResponse = { value: unknown } | { code: number } | "waits";
export type WalletResponses = Record<string, WalletResponse>;

/** A string, because the bench's type check has no DOM types. */
const announce = `(known) => {
  const provider = {
    async request({ method }) {
      const response = known[method] ?? { code: 4001 };
      if (response === "waits") return new Promise(() => undefined);
      if ("code" in response) throw Object.assign(new Error("no"), { code: response.code });
      return response.value;
    },
  };
  const circle = "<circle cx='.5' cy='.5' r='.5' fill='orange'/>";
  const icon = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'>" + circle + "</svg>";
  const info = { uuid: "orange", name: "Orange Wallet", icon, rdns: "test.orange" };
  dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail: { info, provider } }));
}`;

/** Announces a wallet with one account in an open page, as late wallets do. It declines methods without a response. */
export async function announceWallet(page: Page, responses: WalletResponses = {}): Promise<void> {
  const accounts = { value: [`0x${"c1".repeat(20)}`] };
  const all = { eth_requestAccounts: accounts, eth_accounts: accounts, eth_chainId: { value: "0x7a69" }, ...responses };
  await page.evaluate(`(${announce})(${JSON.stringify(all)})`);
  await page.getByRole("button", { name: "Orange Wallet" }).waitFor();
}

/** Connects the wallet and chooses the first option. */
export async function chooseOption(page: Page, responses: WalletResponses = {}): Promise<void> {
  await connectWallet(page, responses);
  await page.locator("#choices .main").first().click();
}

/** Connects the wallet and waits until the options are visible. */
export async function connectWallet(page: Page, responses: WalletResponses = {}): Promise<void> {
  await announceWallet(page, responses);
  await page.getByRole("button", { name: "Orange Wallet" }).click();
  await page.locator("#choices .main").first().waitFor();
}

const json = (status: number, body: object) => ({
  status,
  contentType: "application/json",
  body: JSON.stringify(body),
});

/** Makes a route of the payment return this response. */
export const answer = (page: Page, path: string, body: object, status = 200): Promise<unknown> =>
  page.route(path, (route) => route.fulfill(json(status, body)));

/** Makes a route of the payment never respond. */
export const neverRespond = (page: Page, path: string): Promise<unknown> => page.route(path, () => undefined);

export type Offered = { options: { actions: object[]; collectUrl: string | null }[] };

/** Changes the options that the service returns. */
export const changeOptions = (page: Page, change: (offered: Offered) => void): Promise<unknown> =>
  page.route("**/options", async (route) => {
    const response = await route.fetch();
    const offered = (await response.json()) as Offered;
    change(offered);
    await route.fulfill({ response, json: offered });
  });

/** An action: a transaction that the buyer's wallet sends. */
export const sending = {
  type: "walletRpc",
  data: { chain_id: "eip155:31337", method: "eth_sendTransaction", params: [{}] },
};

/** Returns the status payload of a finished payment. */
export const ended = (status: string, money: string) => ({
  status,
  money,
  isFinal: true,
  version: 99,
  leftMs: 0,
  returnUrl: null,
  txId: null,
  txUrl: null,
});
