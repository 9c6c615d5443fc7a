// Pays a payment link on EVM, or on Solana with the second argument `solana`. It asks first, unless `--yes` is given:
//   node wallet.js 'http://127.0.0.1:8080/?pid=pay_…' solana --yes
// The buyer is one of those that the local stack has funded. They sign and need no gas: the service sends the transaction.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { base58 } from "@scure/base";
import { Keypair } from "@solana/web3.js";
import {
  ConflictError,
  ForeignLinkError,
  GatewayClient,
  NoPaymentOptionError,
  NotFoundError,
  PaymentDeclinedError,
  PaymentExpiredError,
} from "payment-service-client";
import { solanaSigner } from "payment-service-client/solana";
import { evmSigner } from "payment-service-client/viem";
import { formatUnits } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const { values: flags, positionals } = parseArgs({ allowPositionals: true, options: { yes: { type: "boolean" } } });
const [link, family = "evm"] = positionals;
if (!link || !["evm", "solana"].includes(family)) {
  console.error("usage: npm start -- LINK [evm|solana] [--yes]");
  process.exit(2);
}
const stackFile = process.env.STACK_FILE ?? new URL("../../.local/stack.json", import.meta.url);
const stack = JSON.parse(readFileSync(stackFile, "utf8"));

/** Returns a signer of an EVM account. */
function openEvmSigner() {
  const { chain, buyers } = stack.evm;
  return evmSigner(privateKeyToAccount(buyers[0].privateKey), { chains: [Number(chain.replace("eip155:", ""))] });
}

/** Returns a signer of a Solana account, whose secret is base58 as wallets export it. */
function openSolanaSigner() {
  const { chain, buyers } = stack.solana;
  return solanaSigner(Keypair.fromSecretKey(base58.decode(buyers[0].secretKey)), { chain });
}

const format = ({ value, display }) => `${formatUnits(BigInt(value), display.decimals)} ${display.assetSymbol}`;

/** Shows the buyer who asks for how much, and returns the first option when they agree. A link alone proves nothing. */
async function choose([option], { merchant, amount }) {
  console.log(`${JSON.stringify(merchant.name)} asks for ${format(amount)}.`);
  console.log(`You pay ${format(option.amount)} on ${option.amount.display.networkName} from ${option.account}.`);
  if (flags.yes) return option;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question("Pay? [y/N] ");
  terminal.close();
  return /^y(es)?$/i.test(answer) ? option : undefined;
}

/** What ends a payment before anything is signed: it has been paid or has expired, and so on. */
const ends = [ConflictError, ForeignLinkError, NoPaymentOptionError, PaymentDeclinedError, PaymentExpiredError];

/** Pays as the wallet app of one mode. Returns undefined when the payment belongs to the other mode. */
async function pay(appId, signer) {
  // The service is the configured one, never the one that a link names: a wallet signs what its service asks. The client
  // refuses a link of another host. The app id is public: it names the wallet's app and permits nothing but to pay.
  const gateway = new GatewayClient({ baseUrl: stack.baseUrl, appId });
  try {
    return await gateway.pay(link, signer, { choose });
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    if (!ends.some((Kind) => error instanceof Kind)) throw error;
    console.error(`nothing is paid: ${error.message}`);
    process.exit(1);
  }
}

const signer = family === "evm" ? openEvmSigner() : openSolanaSigner();
const status = (await pay(stack.live.appId, signer)) ?? (await pay(stack.test.appId, signer));
if (!status) throw new Error("the service has no payment with this link");
console.log(`the payment is ${status.status}${status.info ? `: transaction ${status.info.txId}` : ""}`);
if (status.status !== "succeeded") process.exitCode = 1;
