import { encodeFunctionData, type Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { encodeTransfer } from "../../chains/evm/eip3009.ts";
import { confirm, createPayment, listOptions, type Shop, signOption } from "../../local/buyer-client.ts";
import { usdcAbi } from "../../local/circle-artifacts.ts";
import type { Say } from "../../local/service.ts";
import type { Stack } from "../../local/stack.ts";
import { makeForeignTraffic } from "../support/foreign-traffic.ts";
import { measureCatchUp, readPeakMemory, STEP_MS } from "./catch-up.ts";
import type { Passed } from "./counting-proxy.ts";
import { type DowntimeLedger, openDowntimeLedger, waitFor } from "./downtime-ledger.ts";
import { preparePayments } from "./run-payments.ts";

/** Transfers that are broadcast when the workers stop, and transfers that others make meanwhile. */
const OURS = { payouts: 10, sent: 15, relayed: 15, deposits: 10 };
/** Blocks with transfers of strangers, and how many there are in each. */
const BUSY_BLOCKS = 200;
const FOREIGN = 2_000;
/** Blocks of one range of logs, as networks files set it by default. */
const LOG_RANGE = 500;
/** Calls for one range, which is read twice, and calls that do not depend on the number of blocks. */
const CALLS_PER_RANGE = 7;
const FIXED_CALLS = 400;

type Args = { proxy: { read(): Passed }; blocks: number; say: Say };
/** Something that happens on the chain while the workers are down. */
type Event = () => Promise<unknown>;

/**
 * Stops the workers while the chain makes blocks with transfers of strangers and fifty of ours, and measures how the worker
 * catches up. Returns true if it missed nothing and stayed within the limits.
 */
export async function benchDowntime(stack: Stack, args: Args): Promise<boolean> {
  const ledger = openDowntimeLedger(stack.file(), stack.chain.id);
  return measure(stack, ledger, args).finally(ledger.close);
}

async function measure(stack: Stack, ledger: DowntimeLedger, { proxy, blocks, say }: Args): Promise<boolean> {
  const { client } = stack.chain;
  const makeTraffic = await makeForeignTraffic(stack.chain, 10_000_000_000n);
  await client.setAutomine(false);
  say(`signing ${OURS.relayed} payments that third parties will send`);
  const events = [...(await signForThirdParties(stack)), ...planDeposits(stack)];
  say(`sending ${OURS.payouts} payouts and ${OURS.sent} payments that no block includes yet`);
  await sendBeforeStop(stack, ledger);
  const before = { booked: await ledger.read(), memory: readPeakMemory(stack.file()) };
  const startWorkers = await stack.hold(["worker"]);
  events.push(...(await takeFromPool(stack, ledger)));

  say(`${blocks} blocks without workers, ${BUSY_BLOCKS} of them with ${FOREIGN} transfers of strangers`);
  const shareOf = (count: number, part: number) =>
    Math.floor(((part + 1) * count) / BUSY_BLOCKS) - Math.floor((part * count) / BUSY_BLOCKS);
  let happened = 0;
  for (let part = 0; part < BUSY_BLOCKS; part += 1) {
    await makeTraffic(FOREIGN);
    const due = events.slice(happened, happened + shareOf(events.length, part));
    for (const happen of due) await happen();
    happened += due.length;
    await client.mine({ blocks: shareOf(blocks, part), interval: 0 });
  }
  const head = Number(await client.getBlockNumber());

  say("the worker starts again");
  return measureCatchUp(
    { stack, ledger, proxy },
    {
      setting: `${blocks} blocks, ${BUSY_BLOCKS} of them with ${FOREIGN} transfers of strangers`,
      final: head,
      startWorkers,
      before,
      expected: { payments: OURS.sent + OURS.relayed, payouts: OURS.payouts, deposits: OURS.deposits },
      mostCalls: Math.ceil(blocks / LOG_RANGE) * CALLS_PER_RANGE + FIXED_CALLS,
    },
  );
}

/** Lets the worker sign and broadcast payouts and payments that no block includes. */
async function sendBeforeStop(stack: Stack, ledger: DowntimeLedger): Promise<void> {
  const { client } = stack.chain;
  await confirmPayments(stack, OURS.payouts);
  await waitFor(
    "the first payments are sent",
    STEP_MS,
    async () => (await ledger.countSent("payment")) === OURS.payouts,
  );
  await client.mine({ blocks: 1 });
  await waitFor("the payouts are sent", STEP_MS, async () => (await ledger.countSent("settlement")) === OURS.payouts);
  await confirmPayments(stack, OURS.sent);
  await waitFor("the payments are sent", STEP_MS, async () => (await ledger.countSent("payment")) === OURS.sent);
}

/**
 * Takes the worker's transactions out of the pool. Returns one event for each, in the order of the nonces, that hands it to
 * the chain again.
 */
async function takeFromPool(stack: Stack, ledger: DowntimeLedger): Promise<Event[]> {
  const { client } = stack.chain;
  const sent = await ledger.listSent();
  for (const { hash } of sent) await client.dropTransaction({ hash });
  return sent.map(
    ({ bytes }) =>
      () =>
        client.sendRawTransaction({ serializedTransaction: `0x${bytes.toString("hex")}` }),
  );
}

async function confirmPayments(stack: Stack, payments: number): Promise<void> {
  const { baseUrl, live: caller } = stack.file();
  for (const { paymentId, ...signed } of await preparePayments(stack.file(), payments))
    await confirm({ baseUrl, caller }, paymentId, signed);
}

/** Creates payments whose buyers sign and do not confirm. Returns events in which a third party sends the signatures. */
async function signForThirdParties(stack: Stack): Promise<Event[]> {
  const { client, contracts, id } = stack.chain;
  const { baseUrl, live: caller, evm } = stack.file();
  const shop: Shop = { baseUrl, caller };
  const expiresAt = new Date(Date.now() + 3_600_000);
  const signed = evm.buyers.slice(2, 2 + OURS.relayed).map(async ({ privateKey }, index): Promise<Event> => {
    const buyer = privateKeyToAccount(privateKey as Hex);
    const paymentId = await createPayment(shop, { referenceId: `relayed-${index}`, cents: "1", expiresAt });
    const [option] = await listOptions(shop, paymentId, [`${id}:${buyer.address}`]);
    const [action] = option?.actions ?? [];
    if (!option || action?.type !== "walletRpc") throw new Error("the buyer has nothing to sign");
    const [
      {
        data: [signature],
      } = { data: [] },
    ] = await signOption(shop, paymentId, option, buyer);
    const { from, to, value, validBefore, nonce } = JSON.parse(String(action.data.params[1])).message;
    const authorization = {
      token: contracts.token,
      from,
      to,
      value: BigInt(value),
      validBefore: Number(validBefore),
      nonce,
    };
    const data = encodeTransfer(authorization, signature as Hex);
    return () => client.sendTransaction({ to: contracts.token, data, gas: 200_000n });
  });
  return Promise.all(signed);
}

/** Returns events in which a buyer that holds gas transfers tokens to the treasury and names no payment. */
function planDeposits(stack: Stack): Event[] {
  const { client, contracts, keys } = stack.chain;
  const [buyer] = stack.file().evm.buyers;
  if (!buyer) throw new Error("the stack has no buyers");
  const account = privateKeyToAccount(buyer.privateKey as Hex);
  return Array.from({ length: OURS.deposits }, (_, index) => () => {
    const args = [keys.treasury.address, BigInt(index + 1)] as const;
    const data = encodeFunctionData({ abi: usdcAbi, functionName: "transfer", args });
    return client.sendTransaction({ account, to: contracts.token, data, gas: 100_000n });
  });
}
