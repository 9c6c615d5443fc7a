import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import {
  ask,
  cancel,
  confirm,
  createPayment,
  getStatus,
  listOptions,
  pay,
  type Shop,
  signOption,
  waitFinal,
} from "../../local/buyer-client.ts";
import { usdcAbi } from "../../local/circle-artifacts.ts";
import type { Stack } from "../../local/stack.ts";

/** Time limit for a payment to end, milliseconds. An incident delays it. */
const FINAL_MS = 90_000;
/** The share of the load that may fail. */
const MOST_ERRORS = 0.05;
/** Payments begin for at most so much longer while `isEnough` returns false, milliseconds. */
const MORE_MS = 270_000;

/**
 * Sends everything that the dashboards distinguish: payments on both chain families and in test mode, refused and expired
 * ones, refunds, webhooks that fail, requests that fail, and a deposit that belongs to no payment. Returns when all payments
 * have ended.
 * @param args.seconds how long to begin new payments at least
 * @param args.isEnough asked from then on: a rate has a value only when a process was scraped while its counter grew, which takes
 * longer on a busy machine
 */
export async function sendMixedLoad(
  stack: Stack,
  { seconds, isEnough }: { seconds: number; isEnough: () => Promise<boolean> },
): Promise<void> {
  const { baseUrl, live, test } = stack.file();
  const shop: Shop = { baseUrl, caller: live };
  const hooks = await startReceiver();
  await ask(shop, "POST", "/v1/webhook-endpoints", { url: hooks.url });
  const until = Date.now() + seconds * 1_000;
  const running: Promise<unknown>[] = [];
  const errors: unknown[] = [];
  const begin = (...works: Promise<unknown>[]) => {
    for (const work of works) running.push(work.catch((error: unknown) => errors.push(error)));
  };
  begin(failOnce(stack, shop), depositWithoutPayment(stack));
  const isOver = async () => Date.now() >= until + MORE_MS || (Date.now() >= until && (await isEnough()));
  for (let round = 0; !(await isOver()); round += 1) {
    begin(payEach(stack, shop, round), simulate({ baseUrl, caller: test }, round), readLists(shop));
    if (round % 10 === 0) begin(refuseEach(shop, round));
    // The rate rises and falls, as traffic does.
    await pause(1_000 + 700 * Math.sin(round / 20));
  }
  await Promise.all(running);
  await hooks.close();
  // An incident may fail a few.
  if (errors.length > running.length * MOST_ERRORS)
    throw new AggregateError(errors, `${errors.length} of ${running.length} parts of the load failed: ${errors[0]}`);
}

/** Pays once on each chain, and refunds the payment on EVM of every second round. */
async function payEach(stack: Stack, shop: Shop, round: number): Promise<void> {
  const { chain, solana } = stack;
  const buyer = solana.buyers[round % 10];
  if (!buyer) throw new Error("the stack has too few buyers");
  const [one, other] = await Promise.all([
    createPayment(shop, { referenceId: `evm ${round}`, cents: `${100 + round}` }),
    createPayment(shop, { referenceId: `solana ${round}`, cents: `${200 + round}` }),
  ]);
  const held = getStatus(shop, one, 5_000);
  await Promise.all([
    pay(shop, one, privateKeyToAccount(readBuyer(chain, 2 + (round % 10))), chain.id),
    pay(shop, other, buyer, solana.id),
  ]);
  await Promise.all([held, waitFinal(shop, one, FINAL_MS), waitFinal(shop, other, FINAL_MS)]);
  if (round % 2 === 0) await ask(shop, "POST", "/v1/refunds", { paymentId: one });
}

/** Pays in test mode, where no chain is used. */
async function simulate(shop: Shop, round: number): Promise<void> {
  const id = await createPayment(shop, { referenceId: `test ${round}`, cents: "100" });
  await ask(shop, "POST", `/v1/payments/${id}/simulate`, { status: "succeeded" });
}

/** Reads the lists that a replica may serve. */
async function readLists(shop: Shop): Promise<void> {
  for (const list of ["payments", "refunds"]) await ask(shop, "GET", `/v1/${list}`);
}

/** Cancels one payment, lets one expire, and sends requests that are refused. */
async function refuseEach(shop: Shop, round: number): Promise<void> {
  const make = (referenceId: string, expiresAt?: Date) =>
    createPayment(shop, { referenceId, cents: "100", ...(expiresAt ? { expiresAt } : {}) });
  await cancel(shop, await make(`cancelled ${round}`));
  const expiring = await make(`expires ${round}`, new Date(Date.now() + 10_000));
  await ask(shop, "GET", "/v1/payments/pay_unknown").catch(() => undefined);
  await fetch(`${shop.baseUrl}/v1/payments`);
  await waitFinal(shop, expiring, FINAL_MS);
}

/** Confirms one payment without money. */
async function failOnce({ chain }: Stack, shop: Shop): Promise<void> {
  const payer = privateKeyToAccount(readBuyer(chain, 0));
  const unpaid = await createPayment(shop, { referenceId: "spent elsewhere", cents: "100" });
  const [option] = await listOptions(shop, unpaid, [`${chain.id}:${payer.address}`]);
  if (!option) throw new Error("the service returned no option");
  const { client, contracts } = chain;
  const token = { address: contracts.token, abi: usdcAbi } as const;
  const balance = await client.readContract({ ...token, functionName: "balanceOf", args: [payer.address] });
  const args = [privateKeyToAccount(readBuyer(chain, 1)).address, balance] as const;
  const hash = await client.writeContract({ ...token, functionName: "transfer", args, account: payer });
  await client.waitForTransactionReceipt({ hash });
  const results = await signOption(shop, unpaid, option, payer);
  await confirm(shop, unpaid, { optionId: option.id, results }).catch(() => undefined);
}

/** Sends tokens to the treasury that no payment asks for. */
async function depositWithoutPayment({ chain }: Stack): Promise<void> {
  const hash = await chain.client.writeContract({
    address: chain.contracts.token,
    abi: usdcAbi,
    functionName: "mint",
    args: [chain.keys.treasury.address, 1_230_000n],
  });
  await chain.client.waitForTransactionReceipt({ hash });
}

/** Starts a merchant's server that refuses every third webhook. */
async function startReceiver() {
  let count = 0;
  const server = createServer((_request, response) => {
    count += 1;
    response.writeHead(count % 3 === 0 ? 500 : 200).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
  const close = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { url, close };
}

/** Returns the key of a buyer. The first two hold money for gas. */
function readBuyer({ buyers }: Stack["chain"], index: number): Hex {
  const key = buyers[index]?.privateKey;
  if (!key) throw new Error("the stack has too few buyers");
  return key;
}
