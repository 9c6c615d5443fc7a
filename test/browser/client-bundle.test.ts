import { createServer } from "node:http";
import { resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { PaymentClient } from "../../client/index.ts";
import { newKey } from "../../local/networks-document.ts";
import { makeMerchant, startApi } from "../integration/api/start-api.ts";
import { listen } from "../support/listen.ts";
import { openPage } from "./open-browser.ts";

/** Returns a minified bundle for browsers. Fails when the sources import something of Node. */
async function bundle(contents: string): Promise<string> {
  const stdin = { contents, resolveDir: resolve(import.meta.dirname, "../../client") };
  const options = { bundle: true, minify: true, format: "iife", platform: "browser", target: "es2022" } as const;
  const { outputFiles } = await build({ stdin, ...options, write: false, logLevel: "silent" });
  return outputFiles[0]?.text ?? "";
}

/** A web wallet, whose account signs outside of the page. */
const wallet = `
import { GatewayClient } from "./index.ts";
import { evmSigner } from "./viem.ts";
window.pay = async ({ baseUrl, appId, paymentId, address }) => {
  const account = { address, signTypedData: ({ account: _, ...data }) => window.signOutside(JSON.stringify(data)) };
  const gateway = new GatewayClient({ baseUrl, appId });
  return gateway.pay(paymentId, evmSigner(account, { chains: [31337] }), { choose: ([option]) => option });
};
`;

test("a web wallet of another origin pays with the bundled client", async () => {
  const api = await startApi();
  const merchant = await makeMerchant(api);
  const client = new PaymentClient({ baseUrl: api.url, apiKey: merchant.key, merchantId: merchant.merchantId });
  const { paymentId } = await client.payments.create({ amount: { unit: "iso4217/USD", value: "1250" } });
  const page = `<!doctype html><title>Wallet</title><script>${await bundle(wallet)}</script>`;
  const origin = await listen(
    createServer((_request, response) => void response.writeHead(200, { "content-type": "text/html" }).end(page)),
  );
  const opened = await openPage(origin, { provokes: true });
  const account = privateKeyToAccount(newKey().privateKey);
  await opened.page.exposeFunction("signOutside", (data: string) => account.signTypedData(JSON.parse(data)));
  await opened.page.goto(origin);
  // The api alone accepts the confirm: a worker would verify it.
  const accepted = opened.page.waitForResponse((response) => response.url().includes("/confirm") && response.ok());
  const paying = opened.page.evaluate(
    (input) => (window as unknown as { pay(input: object): Promise<unknown> }).pay(input),
    { baseUrl: api.url, appId: merchant.wallet["app-id"], paymentId, address: account.address },
  );
  await Promise.race([accepted, paying]);
  await client.payments.simulate(paymentId, "succeeded");
  expect(await paying).toMatchObject({ status: "succeeded", isFinal: true });
});

test("the client adds little to a page: bytes after minification and gzip", async () => {
  const size = async (source: string) => gzipSync(await bundle(source)).length;
  expect(await size('export { PaymentClient } from "./index.ts";')).toBeLessThan(6_000);
  expect(await size('export { GatewayClient } from "./index.ts"; export { evmSigner } from "./viem.ts";')).toBeLessThan(
    7_500,
  );
  expect(await size('export { verifyWebhook } from "./index.ts";')).toBeLessThan(1_300);
});
