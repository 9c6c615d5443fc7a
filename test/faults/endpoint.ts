import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { freePort } from "../../ops/local/ports.ts";
import { atEnd } from "../support/at-end.ts";
import { type Answer, askLagging, type Call } from "./lagging.ts";

/** What can be wrong with an RPC endpoint. */
export const moods = [
  "refuses",
  "hangs",
  "says 429",
  "says 500",
  "loses answers to sends",
  "delivers twice",
  "lags 3 blocks",
  "forgets receipts",
  "serves another chain",
] as const;
export type Mood = (typeof moods)[number];

export type Endpoint = {
  readonly url: string;
  /** How it behaves from now on; undefined passes everything on as it is. What hangs is cut when the mood changes. */
  setMood(mood: Mood | undefined): void;
  /** How many calls have felt the present mood. */
  felt(): number;
};

type Frame = Call & { id: unknown };
const behind = 3;

/** A JSON-RPC endpoint before a chain, as bad as it is told to be. */
export async function startEndpoint({ target }: { target: string }): Promise<Endpoint> {
  let mood: Mood | undefined;
  let felt = 0;
  const hanging = new Set<IncomingMessage>();

  const ask = async ({ method, params }: Call): Promise<Answer> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const answered = await fetch(target, { method: "POST", headers: { "content-type": "application/json" }, body });
    const { result, error } = (await answered.json()) as Answer;
    return error === undefined ? { result } : { error };
  };
  const answerOne = async (call: Call): Promise<Answer> => {
    if (isFelt(mood, call)) felt += 1;
    if (mood === "lags 3 blocks") return askLagging(ask, call, behind);
    if (mood === "serves another chain" && call.method === "eth_chainId") return { result: "0x1" };
    if (mood === "forgets receipts" && call.method === "eth_getTransactionReceipt") return { result: null };
    // The caller hears what the second delivery came to.
    if (mood === "delivers twice") await ask(call);
    return ask(call);
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { frames, isBatch } = await readFrames(request);
    if (mood === "refuses" || mood === "hangs" || mood?.startsWith("says")) felt += 1;
    if (mood === "refuses") return cut(request);
    if (mood === "hangs") return void hanging.add(request);
    if (mood === "says 429") return void response.writeHead(429, { "retry-after": "1" }).end("slow down");
    if (mood === "says 500") return void response.writeHead(500).end("internal error");
    const answers = await Promise.all(
      frames.map(async ({ id, ...call }) => ({ jsonrpc: "2.0", id, ...(await answerOne(call)) })),
    );
    const isSend = frames.some(({ method }) => method === "eth_sendRawTransaction");
    if (isSend && mood === "loses answers to sends") return cut(request);
    const body = JSON.stringify(isBatch ? answers : answers[0]);
    response.writeHead(200, { "content-type": "application/json" }).end(body);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => cut(request));
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    felt: () => felt,
    setMood(next) {
      mood = next;
      felt = 0;
      for (const request of hanging) cut(request);
      hanging.clear();
    },
  };
}

/** Whether a call that reaches the chain is answered otherwise than it should be. */
function isFelt(mood: Mood | undefined, { method }: Call): boolean {
  if (mood === "loses answers to sends" || mood === "delivers twice") return method === "eth_sendRawTransaction";
  if (mood === "serves another chain") return method === "eth_chainId";
  if (mood === "forgets receipts") return method === "eth_getTransactionReceipt";
  return mood === "lags 3 blocks";
}

/** A reset, as a crashed node or a broken network gives it, and not an orderly end. */
function cut(request: IncomingMessage): void {
  request.socket.resetAndDestroy();
}

async function readFrames(request: IncomingMessage): Promise<{ frames: Frame[]; isBatch: boolean }> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const parsed = JSON.parse(Buffer.concat(parts).toString("utf8")) as Partial<Frame> | Partial<Frame>[];
  const frames = [parsed].flat().map(({ id, method, params }) => ({ id, method: method ?? "", params: params ?? [] }));
  return { frames, isBatch: Array.isArray(parsed) };
}
