import { base58 } from "@scure/base";
import { PublicKey } from "@solana/web3.js";
import type { Call } from "../support/lagging-node.ts";
import type { Cluster } from "./faulty-endpoint.ts";

/** How many slots a lagging node is behind: more than any margin in the service. */
const behind = 40;

/** Returns the methods and responses by which the failures are implemented for a Solana endpoint. */
export function solanaCluster({ slotMs, finalityDepthSlots }: { slotMs: number; finalityDepthSlots: number }): Cluster {
  return {
    send: "sendTransaction",
    // The first signature follows the byte that counts the signatures.
    nameOf: ({ params }) => base58.encode(Buffer.from(String(params[0]), "base64").subarray(1, 65)),
    identity: { method: "getGenesisHash", other: PublicKey.default.toBase58() },
    receipts: "getSignatureStatuses",
    forget: ({ result, ...rest }) =>
      isInContext(result) ? { result: { ...result, value: result.value.map(() => null) } } : rest,
    lag: () => createLag({ lagMs: behind * slotMs, finalityDepthSlots }),
  };
}

type InContext = { context: { slot: number }; value: unknown[] };
const isInContext = (result: unknown): result is InContext => Array.isArray((result as InContext | undefined)?.value);

type Recorded = { at: number; value: unknown };
type Placed = { slot: number; confirmationStatus?: string } | null;

/** How long recorded responses are kept, milliseconds. */
const keepMs = 15_000;

/**
 * Answers as a node does that is some slots behind: it returns the recorded slots, blockhashes and accounts of that time,
 * and no transaction that has landed since.
 */
function createLag({
  lagMs,
  finalityDepthSlots,
}: {
  lagMs: number;
  finalityDepthSlots: number;
}): ReturnType<Cluster["lag"]> {
  const recorded = new Map<string, Recorded[]>();
  const note = (key: string, value: unknown) => {
    const at = Date.now();
    const kept = (recorded.get(key) ?? []).filter((one) => at - one.at < keepMs);
    recorded.set(key, [...kept, { at, value }]);
  };
  const recall = (key: string, live: unknown) =>
    (recorded.get(key) ?? []).findLast(({ at }) => Date.now() - at >= lagMs)?.value ?? live;
  const accountKeys = ({ params: [addresses, config] }: Call) =>
    (addresses as string[]).map((address) => `account ${address} ${JSON.stringify(config)}`);

  return {
    hear(call, { result }) {
      if (call.method === "getSlot" || call.method === "getEpochInfo" || call.method === "getLatestBlockhash")
        note(keyOf(call), result);
      if (call.method === "getMultipleAccounts" && isInContext(result))
        for (const [index, key] of accountKeys(call).entries()) note(key, result.value[index]);
    },
    async ask(ask, call) {
      const head = Number((await ask({ method: "getSlot", params: [{ commitment: "processed" }] })).result) - behind;
      const least = minContextSlot(call);
      if (least !== undefined && least > head)
        return { error: { code: -32_016, message: "Minimum context slot has not been reached" } };
      const answer = await ask(call);
      if (answer.error !== undefined) return answer;
      if (isInContext(answer.result) && call.method === "getMultipleAccounts") {
        const { context, value } = answer.result;
        const keys = accountKeys(call);
        const old = value.map((live, index) => recall(keys[index] ?? "", live));
        return { result: { context: { ...context, slot: head }, value: old } };
      }
      if (isInContext(answer.result) && call.method === "getSignatureStatuses")
        return { result: { ...answer.result, value: answer.result.value.map((one) => seeFrom(head, one as Placed)) } };
      if (call.method === "getSignaturesForAddress")
        return {
          result: (answer.result as { slot: number }[]).filter(({ slot }) => slot <= head - finalityDepthSlots),
        };
      if (call.method === "getTransaction")
        return ((answer.result as Placed)?.slot ?? 0) > head - finalityDepthSlots ? { result: null } : answer;
      return { ...answer, result: recall(keyOf(call), answer.result) };
    },
  };

  function seeFrom(head: number, placed: Placed): Placed {
    if (placed === null || placed.slot > head) return null;
    const isFinal = placed.slot <= head - finalityDepthSlots;
    return isFinal ? placed : { ...placed, confirmationStatus: placed.slot === head ? "processed" : "confirmed" };
  }
}

const keyOf = ({ method, params }: Call) => `${method} ${JSON.stringify(params)}`;

function minContextSlot({ params }: Call): number | undefined {
  const config = params.find((one): one is { minContextSlot?: number } => typeof one === "object" && one !== null);
  return config?.minContextSlot;
}
