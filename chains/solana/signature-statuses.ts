import { z } from "zod";
import { chunk } from "../../runtime/chunk.ts";
import { cleanText } from "../../runtime/clean-text.ts";
import type { Call } from "../json-rpc.ts";
import { askFirstSlot } from "./first-block.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** Maximum number of signatures per call. */
const SIGNATURES_PER_CALL = 256;

/** The commitments of a slot, in order. */
const depths = ["processed", "confirmed", "finalized"] as const;

/** The status of a transaction: its slot, its commitment, and its error if it failed. */
export type SignatureStatus = {
  slot: number;
  depth: (typeof depths)[number];
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

/**
 * Returns for each signature that any endpoint knows its deepest status, and the slot that this endpoint has reached, searching
 * the whole history. Never throws.
 */
export async function findStatuses(
  chain: SolanaChain,
  signatures: readonly string[],
): Promise<Map<string, { status: SignatureStatus; slot: number }>> {
  const found = new Map<string, { status: SignatureStatus; slot: number }>();
  for (const some of chunk(signatures, SIGNATURES_PER_CALL)) {
    const answers = await chain.rpc.queryAvailable("getSignatureStatuses", (_connection, call) =>
      askStatuses(call, some, true),
    );
    for (const { answer } of answers)
      for (const [index, signature] of some.entries()) {
        const status = answer.statuses[index];
        const known = found.get(signature);
        if (status && (!known || depths.indexOf(status.depth) > depths.indexOf(known.status.depth)))
          found.set(signature, { status, slot: answer.slot });
      }
  }
  return found;
}

/**
 * One endpoint's status of a transaction. `isAbsent` is true when the endpoint does not know the transaction, although it has reached
 * the slot in question and its history contains that slot.
 */
export type EndpointReport = { by: string; status: SignatureStatus | undefined; isAbsent: boolean };

/**
 * Returns what each endpoint that answers says of transactions, searching the whole history. `slots` has the slot of each
 * transaction by its signature. Never throws.
 */
export async function readEndpointReports(
  chain: SolanaChain,
  slots: ReadonlyMap<string, number>,
): Promise<Map<string, EndpointReport[]>> {
  const reports = new Map([...slots.keys()].map((signature): [string, EndpointReport[]] => [signature, []]));
  for (const some of chunk([...slots], SIGNATURES_PER_CALL)) {
    const signatures = some.map(([signature]) => signature);
    const answers = await chain.rpc.queryAvailable("getSignatureStatuses", async (_connection, call) => {
      const { slot: reached, statuses } = await askStatuses(call, signatures, true);
      const isMissing = some.map(([, slot], index) => statuses[index] === undefined && reached >= slot);
      // Asked only when it decides, and after the statuses: a block that is deleted in between counts as deleted.
      const begins = isMissing.includes(true) ? await askFirstSlot(call).catch(() => undefined) : undefined;
      return some.map(([, slot], index) => ({
        status: statuses[index],
        isAbsent: isMissing[index] === true && begins !== undefined && begins <= slot,
      }));
    });
    for (const { by, answer } of answers)
      for (const [index, report] of answer.entries()) reports.get(signatures[index] ?? "")?.push({ by, ...report });
  }
  return reports;
}

const Statuses = z.object({
  context: z.object({ slot: z.number() }),
  value: z.array(
    z
      .object({
        slot: z.number(),
        err: z.unknown(),
        confirmationStatus: z.enum(depths).nullish(),
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
