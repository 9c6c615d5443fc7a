import { PublicKey } from "@solana/web3.js";
import { formatUnits } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { readHex } from "../runtime/hex.ts";
import { createPayment, getStatus, pay, type Shop, waitFinal } from "./buyer-client.ts";
import { printHistory } from "./demo-report.ts";
import type { Progress } from "./progress.ts";
import { tokenBalance } from "./spl-tokens.ts";
import type { Stack } from "./stack.ts";
import { usdcBalance } from "./usdc.ts";
import { waitUntil } from "./wait-until.ts";

/** $12.50 */
const cents = "1250";
const inUsdc = 12_500_000n;

/** Pays one payment on EVM and one on Solana and lets a third one expire, over HTTP like a merchant and a wallet. */
export async function runDemo(stack: Stack, progress: Progress): Promise<void> {
  const { baseUrl, live } = stack.file();
  const shop: Shop = { baseUrl, caller: live };
  await showPaid(stack, shop, progress);
  await showPaidOnSolana(stack, shop, progress);
  await showExpired(shop, progress);
}

async function showPaid(stack: Stack, shop: Shop, { say, print }: Progress): Promise<void> {
  const { chain } = stack;
  // The third buyer has tokens and no ETH for gas.
  const key = chain.buyers[2];
  if (key === undefined) throw new Error("the stack has too few buyers");
  const buyer = privateKeyToAccount(key.privateKey);
  const gas = await chain.client.getBalance({ address: buyer.address });
  print(`A buyer: ${buyer.address}, ${formatUnits(gas, 18)} ETH for gas.`);

  say("the merchant requests $12.50");
  const id = await createPayment(shop, { referenceId: "order-1", cents });
  print(`Payment ${id} is ${(await getStatus(shop, id)).status}.`);
  say("the wallet requests the options, signs once and confirms");
  const confirmed = await pay(shop, id, buyer, chain.id);
  print(`The confirm returned: ${confirmed.status}.`);
  say("waiting for the payment to become final");
  const paid = await waitFinal(shop, id, 60_000);
  if (paid.status !== "succeeded" || !paid.info) throw new Error(`the payment ended ${paid.status}`);
  print(`Payment ${id} is ${paid.status}: transaction ${paid.info.txId}.`);
  const receipt = await chain.client.getTransactionReceipt({ hash: readHex(paid.info.txId) });
  if (receipt.status !== "success") throw new Error("the transaction failed on chain");

  say("waiting for the settlement to reach the merchant's account");
  const { token } = chain.contracts;
  const balance = () => usdcBalance(chain.client, token, chain.destination);
  const arrived = async () => (await balance()) >= inUsdc;
  await waitUntil("the merchant's account holds the money", arrived, { withinMs: 60_000, everyMs: 100 });
  print(`The merchant's account ${chain.destination} holds ${formatUnits(await balance(), 6)} USDC.`);
  await printHistory(stack.file().postgresUrl, id, print);
}

async function showPaidOnSolana(stack: Stack, shop: Shop, { say, print }: Progress): Promise<void> {
  const { client, buyers, id: chain, mint, destination } = stack.solana;
  const [buyer] = buyers;
  if (buyer === undefined) throw new Error("the stack has too few buyers");
  const lamports = await client.connection.getBalance(new PublicKey(buyer.address));
  print(`A buyer on Solana: ${buyer.address}, ${formatUnits(BigInt(lamports), 9)} SOL for fees.`);

  say("the merchant requests $12.50, and the buyer pays on Solana");
  const id = await createPayment(shop, { referenceId: "order-2", cents });
  const confirmed = await pay(shop, id, buyer, chain);
  print(`The confirm returned: ${confirmed.status}.`);
  say("waiting for the payment to become final");
  const paid = await waitFinal(shop, id, 60_000);
  if (paid.status !== "succeeded" || !paid.info) throw new Error(`the payment ended ${paid.status}`);
  print(`Payment ${id} is ${paid.status}: transaction ${paid.info.txId}.`);

  say("waiting for the settlement to reach the merchant's account");
  const arrived = async () => (await tokenBalance(client, mint, destination)) >= inUsdc;
  await waitUntil("the merchant's account holds the money", arrived, { withinMs: 60_000, everyMs: 100 });
  const held = await tokenBalance(client, mint, destination);
  print(`The merchant's account ${destination} holds ${formatUnits(held, 6)} USDC.`);
  await printHistory(stack.file().postgresUrl, id, print);
}

async function showExpired(shop: Shop, { say, print }: Progress): Promise<void> {
  say("the merchant requests a third payment, and no buyer pays");
  const id = await createPayment(shop, { referenceId: "order-3", cents, expiresAt: new Date(Date.now() + 3_000) });
  print(`Payment ${id} expires in three seconds.`);
  const end = await waitFinal(shop, id, 30_000);
  if (end.status !== "expired") throw new Error(`the unpaid payment ended ${end.status}`);
  print(`Payment ${id} has ${end.status}: no buyer paid in time, and no money moved.`);
}
