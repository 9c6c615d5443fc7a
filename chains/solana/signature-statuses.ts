import { z } from "zod";
import { chunk } from "../../runtime/chunk.ts";
import { cleanText } from "../../runtime/clean-text.ts";
import type { Call } from "../json-rpc.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** Maximum number of signatures per call. */
export const SIGNATURES_PER_CALL = 256;

/** The status of a transaction: its slot, its commitment, and its error if it failed. */
export type SignatureStatus = {
  slot: number;
  depth: "processed" | "confirmed" | "finalized";
  error: string | undefined;
};

/**
 * Returns the statuses of signatures in order, and the slot that the answering endpoints have reached. A status is undefined
 * if the transaction is unknown. Nodes keep the statuses of about one minute in memory; they search for older ones only if
 * `history` is true.
 */
export async function readStatuses(
  chain: SolanaChain,
  signatures: readonly string[],
  { history }: { history: boolean },
): Promise<{ slot: number; statuses: (SignatureStatus | undefined)[] }> {
  const answers = await Promise.all(
    chunk(signatures, SIGNATURES_PER_CALL).map((some) =>
      chain.rpc.ask("getSignatureStatuses", (_connection, call) => askStatuses(call, some, history)),
    ),
  );
  const slot = Math.min(...answers.map((answer) => answer.slot));
  return { slot, statuses: answers.flatMap(({ statuses }) => statuses) };
}

/** One endpoint's status of a signature, and the slot that the endpoint has reached. */
export type EndpointStatus = { by: string; slot: number; status: SignatureStatus | undefined };

/** Returns the status of each signature at each endpoint that answers, searching the whole history. Never throws. */
export async function readEndpointStatuses(
  chain: SolanaChain,
  signatures: readonly string[],
): Promise<Map<string, EndpointStatus[]>> {
  const words = new Map(signatures.map((signature): [string, EndpointStatus[]] => [signature, []]));
  for (const some of chunk([...words.keys()], SIGNATURES_PER_CALL)) {
    const answers = await chain.rpc.queryAvailable("getSignatureStatuses", (_connection, call) =>
      askStatuses(call, some, true),
    );
    for (const { by, answer } of answers)
      for (const [index, signature] of some.entries())
        words.get(signature)?.push({ by, slot: answer.slot, status: answer.statuses[index] });
  }
  return words;
}

const Statuses = z.object({
  context: z.object({ slot: z.int().nonnegative() }),
  value: z.array(
    z
      .object({
        slot: z.int().nonnegative(),
        err: z.unknown(),
        confirmationStatus: z.enum(["processed", "confirmed", "finalized"]).nullish(),
        confirmations: z.number().nullish(),
      })
      .nullable(),
  ),
});

/** Returns an endpoint's statuses of at most 256 signatures in order, and the slot that it has reached. */
export async function askStatuses(
  call: Call,
  signatures: readonly string[],
  history: boolean,
): Promise<{ slot: number; statuses: (SignatureStatus | undefined)[] }> {
  const options = history ? [{ searchTransactionHistory: true }] : [];
  const { context, value } = Statuses.parse(await call("getSignatureStatuses", [signatures, ...options]));
  if (value.length !== signatures.length) throw new Error("an endpoint returned a wrong number of statuses");
  const statuses = value.map((entry) => {
    if (!entry) return undefined;
    const { slot, err, confirmationStatus, confirmations } = entry;
    // Old nodes send no confirmationStatus. The confirmations of a final transaction are null.
    const depth = confirmationStatus ?? (confirmations === null ? "finalized" : "processed");
    return { slot, depth, error: err === null || err === undefined ? undefined : cleanText(JSON.stringify(err), 200) };
  });
  return { slot: context.slot, statuses };
}
