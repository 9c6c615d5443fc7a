import { z } from "zod";
import { cleanText } from "../../ops/clean-text.ts";
import type { SolanaChain } from "./open.ts";

/**
 * Whether a transaction would go through now, and as of which slot. `later`: it is our own side that is not ready, for example a relayer
 * without money for the fee.
 */
export type Outcome = { ok: true; slot: number } | { ok: false; reason: string; later?: true };

const Simulated = z.object({
  context: z.object({ slot: z.number() }),
  value: z.object({ err: z.union([z.null(), z.string(), z.looseObject({})]), logs: z.array(z.string()).nullish() }),
});

/** Tries a transaction (wire bytes, signatures not asked) on the newest state, its own blockhash included. */
export async function simulate(chain: SolanaChain, bytes: Uint8Array): Promise<Outcome> {
  const params = [
    Buffer.from(bytes).toString("base64"),
    { encoding: "base64", sigVerify: false, commitment: "processed" },
  ];
  const { context, value } = await chain.rpc.ask("simulateTransaction", async (_connection, call) =>
    Simulated.parse(await call("simulateTransaction", params)),
  );
  return value.err === null ? { ok: true, slot: context.slot } : describe(value.err, value.logs ?? []);
}

/** Errors of the fee payer, which is ours: the buyer can do nothing about them. */
const oursToMend = ["InsufficientFundsForFee", "AccountNotFound", "InvalidAccountForFee", "InsufficientFundsForRent"];

function describe(error: unknown, logs: readonly string[]): Outcome {
  const code = typeof error === "string" ? error : (Object.keys(error as object)[0] ?? "unknown");
  if (code === "BlockhashNotFound")
    return { ok: false, reason: "the transaction's blockhash has expired; fetch the option's actions again" };
  if (oursToMend.includes(code)) return { ok: false, later: true, reason: "the network's fee cannot be paid now" };
  const said = logs.findLast((line) => /Error: /.test(line))?.replace(/^.*Error: /, "");
  // Programs of others write what they like into their logs.
  return { ok: false, reason: cleanText(`the transaction would fail: ${said ?? JSON.stringify(error)}`, 200) };
}
