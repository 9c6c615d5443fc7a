import { createServer } from "node:http";
import { readBudget } from "../../chains/solana/compute-budget.ts";
import { firstSignature, parseTransaction } from "../../chains/solana/wire-format.ts";
import { postJson } from "../../local/post-json.ts";
import { listen } from "./listen.ts";

type Call = { id: unknown; method: string; params?: unknown[] };

/**
 * Starts an endpoint of a Solana cluster that is busy: it accepts every transaction, and forwards only those that offer the price
 * of inclusion, in micro-lamports per compute unit. `sent` has the bytes of every transaction, in base64.
 */
export async function startBusyEndpoint({ target }: { target: string }) {
  let price = 0n;
  const sent: string[] = [];
  let onSend: (bytes: Buffer) => Promise<unknown> = async () => undefined;
  const answer = async (call: Call): Promise<unknown> => {
    if (call.method !== "sendTransaction") return JSON.parse(await postJson(target, JSON.stringify(call)));
    const [text = ""] = (call.params ?? []) as string[];
    const bytes = Buffer.from(text, "base64");
    sent.push(text);
    await onSend(bytes);
    const parsed = parseTransaction(bytes);
    if (!("error" in parsed) && readBudget(parsed).unitPrice >= price) await postJson(target, JSON.stringify(call));
    return { jsonrpc: "2.0", id: call.id, result: firstSignature(bytes) };
  };
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = JSON.parse(Buffer.concat(parts).toString("utf8")) as Call | Call[];
    const answers = await (Array.isArray(body) ? Promise.all(body.map(answer)) : answer(body)).catch(() => undefined);
    // The chain ends with the file, perhaps before a call that no one waits for.
    if (answers === undefined) return void request.socket.resetAndDestroy();
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answers));
  });
  const url = await listen(server);
  return {
    url,
    sent,
    /** Sets the price of inclusion. */
    setPrice(next: bigint) {
      price = next;
    },
    /** Sets what is done with the bytes of a transaction before it is answered. */
    onSend(next: typeof onSend) {
      onSend = next;
    },
  };
}
