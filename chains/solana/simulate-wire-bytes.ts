import { z } from "zod";
import { cleanText } from "../../runtime/clean-text.ts";
import type { Call } from "../json-rpc.ts";
import { Height } from "./cluster-state.ts";
import type { SolanaChain } from "./open-solana-chain.ts";
import { MAX_COMPUTE_UNITS } from "./wallet-instructions.ts";

/**
 * The outcome of a simulation, its slot, and the compute units that it took. `later` means that our side is the cause, for example a
 * relayer that cannot pay the fee.
 */
export type SimulationOutcome = { ok: true; slot: number; units: number } | { ok: false; reason: string; later?: true };

const Simulated = z.object({
  context: z.object({ slot: Height }),
  value: z.object({
    err: z.union([z.null(), z.string(), z.looseObject({})]),
    logs: z.array(z.string()).nullish(),
    unitsConsumed: z.number().nullish(),
  }),
});

/**
 * Simulates a transaction (wire bytes) on the newest state without verifying signatures. The blockhash must be valid: an endpoint that
 * is some slots behind does not know a new one yet, so that those that are further are asked too.
 */
export async function simulate(chain: SolanaChain, bytes: Uint8Array): Promise<SimulationOutcome> {
  const params = [
    Buffer.from(bytes).toString("base64"),
    { encoding: "base64", sigVerify: false, commitment: "processed" },
  ];
  const question = async (_connection: unknown, call: Call) =>
    Simulated.parse(await call("simulateTransaction", params));
  const first = await chain.rpc.ask("simulateTransaction", question);
  const further =
    first.value.err === UNKNOWN_BLOCKHASH ? await chain.rpc.queryAvailable("simulateTransaction", question) : [];
  const knowing = further
    .map(({ answer }) => answer)
    .find((one) => one.value.err !== UNKNOWN_BLOCKHASH && one.context.slot >= first.context.slot);
  const { context, value } = knowing ?? first;
  if (value.err !== null) return describe(value.err, value.logs ?? []);
  return { ok: true, slot: context.slot, units: value.unitsConsumed ?? Number(MAX_COMPUTE_UNITS) };
}

/** The error of an endpoint that does not know the blockhash: it has expired, or is too new. */
const UNKNOWN_BLOCKHASH = "BlockhashNotFound";

/** Errors of the fee payer. The buyer cannot fix them, because the fee payer is our relayer. */
const feePayerErrors = [
  "InsufficientFundsForFee",
  "AccountNotFound",
  "InvalidAccountForFee",
  "InsufficientFundsForRent",
];

function describe(error: string | object, logs: readonly string[]): SimulationOutcome {
  const code = typeof error === "string" ? error : (Object.keys(error)[0] ?? "unknown");
  if (code === UNKNOWN_BLOCKHASH)
    return { ok: false, reason: "the transaction's blockhash has expired; fetch the option's actions again" };
  if (feePayerErrors.includes(code)) return { ok: false, later: true, reason: "the network's fee cannot be paid now" };
  const message = logs.findLast((line) => /Error: /.test(line))?.replace(/^.*Error: /, "");
  // A program can write any text into its logs.
  return { ok: false, reason: cleanText(`the transaction would fail: ${message ?? JSON.stringify(error)}`, 200) };
}
