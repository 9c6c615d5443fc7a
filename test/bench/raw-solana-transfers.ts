import { base58 } from "@scure/base";
import { buildPayment } from "../../chains/solana/build-payment.ts";
import { openKeypair } from "../../chains/solana/ed25519-keys.ts";
import { parseTransaction, withSignature } from "../../chains/solana/wire-format.ts";
import { fundSol, newSolanaKey, openSolana } from "../../local/solana-client.ts";
import { callSolana } from "../../local/solana-process.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { runPool } from "./bench-stats.ts";

/** The number of signatures in one status call. */
const STATUSES = 256;
/** Milliseconds between two polls, and after which the run gives up. */
const POLL_MS = 50;
const GIVEN_UP_MS = 120_000;
const BUDGET = { units: 150_000, unitPrice: 0n };

/**
 * Runs the reference: one fee payer without database, queue and checks. Sends signed transfers and polls the statuses, 256 per
 * call, until the last one is confirmed. `inFlight` says what the concurrency counts: requests, so that nothing waits for
 * slots, or transfers until they are confirmed, as payments are counted. Returns the transfers per second.
 */
export async function runRawSolana(
  stack: StackFile,
  args: { payments: number; concurrency: number; inFlight: "requests" | "transfers" },
): Promise<{ perSecond: number }> {
  const url = stack.solana.rpcUrl;
  const feePayer = newSolanaKey();
  await fundSol(await openSolana(url), [feePayer.address]);
  const transactions = await signTransfers(stack, { count: args.payments, feePayer });
  const statuses = pollStatuses(url);
  const begun = performance.now();
  const signatures = await runPool(transactions, args.concurrency, async (transaction) => {
    const options = { encoding: "base64", skipPreflight: true };
    const signature = (await callSolana(url, "sendTransaction", [transaction, options])) as string;
    if (args.inFlight === "transfers") await statuses.waitFor(signature);
    return signature;
  });
  // The statuses of sent transfers are polled when all are sent, which costs least.
  if (args.inFlight === "requests") await Promise.all(signatures.map((signature) => statuses.waitFor(signature)));
  return { perSecond: args.payments / ((performance.now() - begun) / 1_000) };
}

/** Signs the transfers before the measurement starts, as in the measured run. */
async function signTransfers(
  stack: StackFile,
  args: { count: number; feePayer: { address: string; secretKey: string } },
): Promise<string[]> {
  const { value } = (await callSolana(stack.solana.rpcUrl, "getLatestBlockhash")) as { value: { blockhash: string } };
  const [receiver, ...payers] = stack.solana.buyers;
  const relayer = openKeypair(base58.decode(args.feePayer.secretKey));
  return Array.from({ length: args.count }, (_, index) => {
    const payer = payers[index % payers.length];
    if (!payer || !receiver) throw new Error("the stack has too few buyers");
    const transfer = {
      feePayer: args.feePayer.address,
      payer: payer.address,
      mint: stack.solana.mint,
      program: "token" as const,
      decimals: 6,
      receiver: receiver.address,
      amount: 10_000n,
      memo: `raw ${performance.now()} ${index}`,
      makeReceiverAccount: false,
    };
    const signers = [relayer, openKeypair(base58.decode(payer.secretKey))];
    const bytes = signers.reduce(
      (unsigned, signer) => {
        const parsed = parseTransaction(unsigned);
        if ("error" in parsed) throw new Error(parsed.error);
        return withSignature(parsed, signer.address, signer.sign(parsed.message));
      },
      buildPayment(transfer, BUDGET, value.blockhash),
    );
    return Buffer.from(bytes).toString("base64");
  });
}

/** Polls the statuses of the signatures that are waited for, until each is confirmed. A failed transfer rejects. */
function pollStatuses(url: string): { waitFor(signature: string): Promise<void> } {
  const open = new Map<string, { resolve: () => void; reject: (error: unknown) => void }>();
  let isPolling = false;
  const check = async (some: readonly string[]): Promise<void> => {
    const { value } = (await callSolana(url, "getSignatureStatuses", [some])) as {
      value: ({ confirmationStatus: string; err: unknown } | null)[];
    };
    for (const [index, signature] of some.entries()) {
      const { confirmationStatus = "processed", err = null } = value[index] ?? {};
      if (err !== null)
        open.get(signature)?.reject(new Error("a raw transfer failed on chain, so the reference is invalid"));
      else if (confirmationStatus === "processed") continue;
      open.get(signature)?.resolve();
      open.delete(signature);
    }
  };
  const poll = async (): Promise<void> => {
    for (const until = performance.now() + GIVEN_UP_MS; open.size > 0 && performance.now() < until; ) {
      const signatures = [...open.keys()];
      for (let from = 0; from < signatures.length; from += STATUSES)
        await check(signatures.slice(from, from + STATUSES));
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    if (open.size > 0) throw new Error(`${open.size} raw transfers were not confirmed in time`);
  };
  const start = async (): Promise<void> => {
    isPolling = true;
    await poll().catch((error: unknown) => {
      for (const { reject } of open.values()) reject(error);
    });
    isPolling = false;
  };
  return {
    waitFor(signature) {
      const confirmed = new Promise<void>((resolve, reject) => void open.set(signature, { resolve, reject }));
      if (!isPolling) void start();
      return confirmed;
    },
  };
}
