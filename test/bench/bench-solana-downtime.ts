import { setTimeout as pause } from "node:timers/promises";
import { createTransferCheckedInstruction } from "@solana/spl-token";
import { PublicKey, TransactionInstruction } from "@solana/web3.js";
import { MEMO_PROGRAM } from "../../chains/solana/build-payment.ts";
import { confirm, createPayment, listOptions, type Shop } from "../../local/buyer-client.ts";
import type { Say } from "../../local/service.ts";
import { keypairOf, type SolanaKey, sendAll, type Work } from "../../local/solana-client.ts";
import { openTestControls } from "../../local/solana-process.ts";
import { tokenAccountOf } from "../../local/spl-tokens.ts";
import type { Stack } from "../../local/stack.ts";
import { prepareSolanaPayments } from "./bench-solana.ts";
import { measureCatchUp, readPeakMemory, STEP_MS } from "./catch-up.ts";
import type { Passed } from "./counting-proxy.ts";
import { type DowntimeLedger, openDowntimeLedger, waitFor } from "./downtime-ledger.ts";

/**
 * Transfers that are broadcast when the workers stop, and transfers that buyers make meanwhile. Each payout in flight needs a
 * durable nonce account, and by default there are eight.
 */
const OURS = { payouts: 8, sent: 15, unsolicited: 15, deposits: 12 };
/** Transfers of strangers during the downtime. */
const FOREIGN = 500;
/** Parts of the downtime, each with a share of everything that happens. */
const PARTS = 25;
/** The most calls: they depend on the transfers of ours, and not on the number of slots. */
const MOST_CALLS = 150;
/** Slots after which held transactions land: within the lifetime of a blockhash, or long after the downtime. */
const WITHIN_LIFETIME = 140;
const LONG_AFTER = 10_000;
/** Milliseconds between slots while buyers and strangers send. */
const FAST_SLOT_MS = 50;
/** Nodes keep statuses in memory for a shorter time than this, milliseconds. */
const FORGOTTEN_MS = 50_000;

type Args = { proxy: { read(): Passed }; slots: number; slotMs: number; say: Say };

/**
 * Stops the workers while the cluster makes slots with transfers of strangers and fifty of ours, and measures how the worker
 * catches up. Returns true if it missed nothing and stayed within the limits.
 */
export async function benchSolanaDowntime(stack: Stack, args: Args): Promise<boolean> {
  const ledger = openDowntimeLedger(stack.file(), stack.solana.id);
  return measure(stack, ledger, args).finally(ledger.close);
}

async function measure(stack: Stack, ledger: DowntimeLedger, { proxy, slots, slotMs, say }: Args): Promise<boolean> {
  const { client } = stack.solana;
  const controls = openTestControls(stack.file().solana.rpcUrl);
  say(`creating ${OURS.unsolicited} payments that buyers will pay with transfers of their own`);
  const ours = [...(await planUnsolicited(stack, ledger)), ...planDeposits(stack)];
  const foreign = planForeign(stack);
  say(`sending ${OURS.payouts} payouts and ${OURS.sent} payments that have not landed yet`);
  await controls.hold(WITHIN_LIFETIME);
  await confirmPayments(stack, OURS.payouts);
  await waitFor(
    "the first payments are sent",
    STEP_MS,
    async () => (await ledger.countSent("payment")) === OURS.payouts,
  );
  await controls.hold(LONG_AFTER);
  await controls.jump(WITHIN_LIFETIME);
  await waitFor("the payouts are sent", STEP_MS, async () => (await ledger.countSent("settlement")) === OURS.payouts);
  await controls.hold(WITHIN_LIFETIME);
  await confirmPayments(stack, OURS.sent);
  await waitFor("the payments are sent", STEP_MS, async () => (await ledger.countSent("payment")) === OURS.sent);
  const before = { booked: await ledger.read(), memory: readPeakMemory(stack.file()) };
  const startWorkers = await stack.hold(["worker"]);
  const stopped = Date.now();

  say(`${slots} slots without workers, with ${FOREIGN} transfers of strangers`);
  await controls.hold(0);
  await controls.setSlotMs(FAST_SLOT_MS);
  for (let part = 0; part < PARTS; part += 1) {
    await controls.jump(Math.floor(slots / PARTS));
    await sendAll(client, [...shareOf(ours, part), ...shareOf(foreign, part)]);
  }
  await controls.setSlotMs(slotMs);
  // Payouts of the payments that the worker is going to book are not measured.
  await controls.hold(LONG_AFTER);
  await pause(Math.max(0, stopped + FORGOTTEN_MS - Date.now()));
  say("the worker starts again");
  return measureCatchUp(
    { stack, ledger, proxy },
    {
      setting: `${slots} slots with ${FOREIGN} transfers of strangers`,
      final: await client.connection.getSlot("finalized"),
      startWorkers,
      before,
      expected: { payments: OURS.sent + OURS.unsolicited, payouts: OURS.payouts, deposits: OURS.deposits },
      mostCalls: MOST_CALLS,
    },
  );
}

/** Returns the items that belong to a part of the downtime. */
function shareOf<T>(items: readonly T[], part: number): T[] {
  return items.filter((_, index) => index % PARTS === part);
}

async function confirmPayments(stack: Stack, payments: number): Promise<void> {
  const { baseUrl, live: caller } = stack.file();
  for (const { paymentId, ...signed } of await prepareSolanaPayments(stack.file(), payments))
    await confirm({ baseUrl, caller }, paymentId, signed);
}

/** Creates payments and shows buyers their options. Returns transfers of the buyers to the treasury that name them. */
async function planUnsolicited(stack: Stack, ledger: DowntimeLedger): Promise<Work[]> {
  const { id, keys } = stack.solana;
  const { baseUrl, live: caller, solana } = stack.file();
  const shop: Shop = { baseUrl, caller };
  const expiresAt = new Date(Date.now() + 3_600_000);
  const buyers = solana.buyers.slice(0, OURS.unsolicited);
  return Promise.all(
    buyers.map(async (buyer, index) => {
      const paymentId = await createPayment(shop, { referenceId: `unsolicited-${index}`, cents: "1", expiresAt });
      await listOptions(shop, paymentId, [`${id}:${buyer.address}`]);
      return transfer(stack, buyer, {
        to: keys.treasury.address,
        amount: 10_000n,
        memo: await ledger.findKey(paymentId),
      });
    }),
  );
}

/** Returns transfers of a buyer to the treasury that name no payment. */
function planDeposits(stack: Stack): Work[] {
  const to = stack.solana.keys.treasury.address;
  return Array.from({ length: OURS.deposits }, (_, index) =>
    transfer(stack, buyerOf(stack, 16), { to, amount: BigInt(index + 1) }),
  );
}

/** Returns transfers between two buyers, who are strangers to the service here. */
function planForeign(stack: Stack): Work[] {
  const to = buyerOf(stack, 18).address;
  return Array.from({ length: FOREIGN }, (_, index) =>
    transfer(stack, buyerOf(stack, 17), { to, amount: BigInt(index + 1) }),
  );
}

function buyerOf(stack: Stack, index: number): SolanaKey {
  const buyer = stack.solana.buyers[index];
  if (!buyer) throw new Error("the stack has too few buyers");
  return buyer;
}

function transfer(
  { solana: { mint } }: Stack,
  from: SolanaKey,
  args: { to: string; amount: bigint; memo?: string },
): Work {
  const owner = keypairOf(from);
  const instruction = createTransferCheckedInstruction(
    new PublicKey(tokenAccountOf(mint, from.address)),
    new PublicKey(mint.address),
    new PublicKey(tokenAccountOf(mint, args.to)),
    owner.publicKey,
    args.amount,
    mint.decimals,
    [],
    new PublicKey(mint.program),
  );
  const data = Buffer.from(args.memo ?? "");
  const note = new TransactionInstruction({ programId: new PublicKey(MEMO_PROGRAM), keys: [], data });
  return { instructions: args.memo === undefined ? [instruction] : [instruction, note], signers: [owner] };
}
