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
const BUDGET = { units: 150_000, unitPrice: 0n };

/**
 * Runs the reference: one fee payer without database, queue and checks. Sends signed transfers with the given
 * concurrency, and polls the statuses, 256 per call, until the last one is confirmed. Returns the transfers per second.
 */
export async function runRawSolana(
  stack: StackFile,
  args: { payments: number; concurrency: number },
): Promise<{ perSecond: number }> {
  const url = stack.solana.rpcUrl;
  const feePayer = newSolanaKey();
  await fundSol(await openSolana(url), [feePayer.address]);
  const transactions = await signTransfers(stack, { count: args.payments, feePayer });
  const begun = performance.now();
  const signatures = await runPool(
    transactions,
    args.concurrency,
    async (transaction) =>
      (await callSolana(url, "sendTransaction", [transaction, { encoding: "base64", skipPreflight: true }])) as string,
  );
  await waitConfirmed(url, signatures);
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

async function waitConfirmed(url: string, signatures: readonly string[]): Promise<void> {
  let open = [...signatures];
  for (const until = performance.now() + 60_000; open.length > 0 && performance.now() < until; ) {
    const left: string[] = [];
    for (let from = 0; from < open.length; from += STATUSES) {
      const some = open.slice(from, from + STATUSES);
      const { value } = (await callSolana(url, "getSignatureStatuses", [some])) as {
        value: ({ confirmationStatus: string; err: unknown } | null)[];
      };
      if (value.some((status) => status?.err))
        throw new Error("a raw transfer failed on chain, so the reference is invalid");
      left.push(...some.filter((_, index) => (value[index]?.confirmationStatus ?? "processed") === "processed"));
    }
    open = left;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  if (open.length > 0) throw new Error(`${open.length} raw transfers were not confirmed within a minute`);
}
