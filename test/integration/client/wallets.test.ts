import { createWalletClient, custom, type Hex, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import {
  GatewayClient,
  NoPaymentOptionError,
  PaymentClient,
  PaymentDeclinedError,
  type PaymentOption,
  UnknownSendError,
  UnsafeActionError,
  verifyWebhook,
} from "../../../client/index.ts";
import { solanaSigner } from "../../../client/solana.ts";
import { evmSigner } from "../../../client/viem.ts";
import { newKey } from "../../../local/networks-document.ts";
import { signAsWallet } from "../../../local/solana-buyer.ts";
import { keypairOf } from "../../../local/solana-client.ts";
import { fundBuyer } from "../../support/evm-chain.ts";
import { startFleet } from "../../support/fleet.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana } from "../../support/test-solana.ts";
import { mintTestToken, startTokenKinds } from "../../support/token-kinds.ts";
import { waitFor } from "../../support/wait-for.ts";
import { registerEndpointIn, startWebhookEndpoint } from "../../support/webhook-endpoint.ts";

// A wallet signs within the 150 slots of a blockhash, which are 30 seconds here.
const [kinds, solana] = await Promise.all([startTokenKinds(), startTestSolana({ slotMs: 200 })]);
const { chain, assets, permit2, change } = kinds;
const keys = await makeSolanaKeys(solana);
const fleet = await startFleet({ chain, change, solana: { chain: solana, keys }, workers: 1 });
const { apiKey, merchantId } = fleet.shop.caller;
const { baseUrl } = fleet;
const client = new PaymentClient({ baseUrl, apiKey, merchantId });
const gateway = new GatewayClient({ baseUrl, apiKey });
const tokens = [assets.permit, assets.zeroFirst, assets.push];
await client.settlements.create(merchantId, {
  settlements: tokens.map((asset) => ({ asset, destination: `${chain.id}:${fleet.destination}` })),
});

const chains = [chain.client.chain.id];
const makePayment = async () =>
  (await client.payments.create({ referenceId: "order-1", amount: { unit: "iso4217/USD", value: "100" } })).paymentId;

/** A buyer who agrees to the first option. */
const agrees = { choose: ([option]: readonly PaymentOption[]) => option };

/** Returns the wallet client of an account that holds a token and gas. */
async function fundWallet(asset: string) {
  const account = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, asset, account.address);
  await chain.client.setBalance({ address: account.address, value: 10n ** 18n });
  return createWalletClient({ account, chain: chain.client.chain, transport: http(chain.url) });
}

test("a local account of viem pays by one signature, and the merchant's webhooks are verified", async () => {
  const endpoint = await startWebhookEndpoint();
  const { secret } = await registerEndpointIn(fleet.databaseUrl, merchantId, endpoint.url);
  const paymentId = await makePayment();
  const seen: string[] = [];
  const status = await gateway.pay(paymentId, evmSigner(await fundBuyer(chain), { chains }), {
    choose: ([option], { merchant, amount }) => {
      expect([merchant.name, amount.value]).toEqual([expect.any(String), "100"]);
      return option;
    },
    onStatus: (one) => seen.push(one.status),
  });
  expect(status).toMatchObject({ status: "succeeded", isFinal: true, info: { txId: expect.stringMatching(/^0x/) } });
  const arrived = () => endpoint.arrivals.find(({ event }) => event.type === "payment.succeeded");
  const { body, headers } = await waitFor(arrived, { within: 20_000 });
  const event = await verifyWebhook(body, headers, secret);
  if (event.type !== "payment.succeeded") throw new Error(`the event is ${event.type}`);
  expect(event.data).toMatchObject({ payment_id: paymentId, live: true, success: { tx_id: status.info?.txId } });
  expect(await client.payments.get(paymentId)).toMatchObject({ status: "succeeded" });
});

test.each([
  ["an allowance by signature", assets.permit],
  ["approvals, which set the allowance to zero first", assets.zeroFirst],
  ["a transfer of its own", assets.push],
])("a wallet client pays by %s", async (_name, asset) => {
  const wallet = (await fundWallet(asset)).extend(publicActions);
  if (asset === assets.zeroFirst) await wallet.writeContract(approval(asset, 5n));
  expect(await gateway.pay(await makePayment(), evmSigner(wallet, { permit2 }), agrees)).toMatchObject({
    status: "succeeded",
  });
});

/** An approval that is too small for a payment. */
const approval = (asset: string, amount: bigint) =>
  ({
    address: asset.slice(asset.indexOf("erc20:") + 6) as Hex,
    abi: [
      {
        type: "function",
        name: "approve",
        stateMutability: "nonpayable",
        inputs: [
          { name: "spender", type: "address" },
          { name: "amount", type: "uint256" },
        ],
        outputs: [],
      },
    ],
    functionName: "approve",
    args: [permit2, amount],
  }) as const;

test("a wallet that sends no transactions, or does not see their receipts, is not given options that need them", async () => {
  const wallet = await fundWallet(assets.zeroFirst);
  await mintTestToken(chain, assets.push, wallet.account.address);
  const paymentId = await makePayment();
  const withoutClient = gateway.pay(paymentId, evmSigner(wallet.account, { chains }), agrees);
  await expect(withoutClient).rejects.toThrow(NoPaymentOptionError);
  // Without publicActions only the transfer, which nothing follows, is possible.
  const chosen: string[] = [];
  const choose = (options: readonly { amount: { unit: string } }[]) => {
    chosen.push(...options.map(({ amount }) => amount.unit));
    return undefined;
  };
  await expect(gateway.pay(paymentId, evmSigner(wallet), { choose })).rejects.toThrow(PaymentDeclinedError);
  expect(chosen.map((unit) => unit.toLowerCase())).toEqual([`caip19/${assets.push}`.toLowerCase()]);
});

test("a Solana key pair, and a wallet that signs for itself, pay without SOL", async () => {
  const options = { chain: solana.id };
  const buyer = await fundSolanaBuyer(solana);
  const payer = solanaSigner(keypairOf(buyer), options);
  expect(await gateway.pay(await makePayment(), payer, agrees)).toMatchObject({ status: "succeeded" });
  const wallet = {
    publicKey: keypairOf(buyer).publicKey,
    signTransaction: async (bytes: Uint8Array) =>
      Buffer.from(signAsWallet(Buffer.from(bytes).toString("base64"), buyer), "base64"),
  };
  expect(await gateway.pay(await makePayment(), solanaSigner(wallet, options), agrees)).toMatchObject({
    status: "succeeded",
  });
});

test("several signers pay with what one of them holds, and the caller chooses among their options", async () => {
  const signers = [
    evmSigner(await fundBuyer(chain), { chains }),
    solanaSigner(keypairOf(await fundSolanaBuyer(solana)), { chain: solana.id }),
  ];
  const status = await gateway.pay(await makePayment(), signers, {
    choose: (options) => options.find(({ account }) => account.startsWith("solana:")),
  });
  expect(status.info?.optionAmount.unit).toContain("solana:");
});

test("a confirm that is lost on its way is repeated, and what was signed is shown to the caller first", async () => {
  let lost = 0;
  const through = new GatewayClient({
    baseUrl,
    apiKey,
    fetch: async (...request) => {
      const response = await fetch(...request);
      if (String(request[0]).includes("/confirm") && lost++ < 5) throw new TypeError("the response is lost");
      return response;
    },
  });
  const signed: string[] = [];
  const status = await through.pay(await makePayment(), evmSigner(await fundBuyer(chain), { chains }), {
    ...agrees,
    onSigned: ({ optionId }) => void signed.push(optionId),
  });
  expect(status).toMatchObject({ status: "succeeded" });
  expect([signed.length, lost]).toEqual([1, 6]);
});

test("a transaction whose answer the wallet has lost is not sent again: its hash, once found, pays", async () => {
  const { account } = await fundWallet(assets.push);
  const paymentId = await makePayment();
  const hashes: Hex[] = [];
  const losing = custom(
    {
      async request(call) {
        const result = await chain.client.request(call);
        if (call.method !== "eth_sendRawTransaction") return result;
        hashes.push(result);
        throw new Error("the answer is lost");
      },
    },
    { retryCount: 0 },
  );
  const wallet = createWalletClient({ account, chain: chain.client.chain, transport: losing });
  const error = await gateway.pay(paymentId, evmSigner(wallet), agrees).catch((thrown: unknown) => thrown);
  if (!(error instanceof UnknownSendError)) throw error;
  expect(hashes).toHaveLength(1);
  const results = hashes.map((hash) => ({ type: "walletRpc" as const, data: [hash] }));
  await gateway.confirm(paymentId, { optionId: error.optionId, results });
  expect(await gateway.waitUntilFinal(paymentId)).toMatchObject({ status: "succeeded", info: { txId: hashes[0] } });
});

test("an altered response is not signed: another amount, another token, another account and another chain", async () => {
  const buyer = await fundBuyer(chain);
  let asked = 0;
  const account = { address: buyer.address, signTypedData: async () => Promise.reject(new Error(`asked ${++asked}`)) };
  const paymentId = await makePayment();
  const other = `0x${"99".repeat(20)}`;
  const changes: ((text: string) => string)[] = [
    (text) => text.replace('"value":"1000000"', '"value":"2000000"'),
    (text) => text.replace(/erc20:0x[0-9a-fA-F]{40}/, `erc20:${other}`),
    (text) => text.replaceAll(/(\\"from\\":\\")0x[0-9a-fA-F]{40}/g, `$1${other}`),
    (text) => text.replace(/\\"chainId\\":\d+/, '\\"chainId\\":1'),
    (text) => text.replace(/"chain_id":"eip155:\d+"/, '"chain_id":"eip155:1"'),
    (text) => text.replaceAll("TransferWithAuthorization", "SetOwner"),
  ];
  for (const change of changes) {
    const altering = new GatewayClient({
      baseUrl,
      apiKey,
      fetch: async (...request) => {
        const response = await fetch(...request);
        const text = await response.text();
        const altered = change(text);
        expect(altered).not.toBe(text);
        return new Response(altered, { status: response.status });
      },
    });
    await expect(altering.pay(paymentId, evmSigner(account, { chains }), agrees)).rejects.toThrow(UnsafeActionError);
  }
  expect(asked).toBe(0);
});
