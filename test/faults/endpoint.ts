import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type Hex, keccak256 } from "viem";
import { freePort } from "../../ops/local/ports.ts";
import { atEnd } from "../support/at-end.ts";
import { type Answer, type Ask, askLagging, type Call } from "./lagging.ts";
import { askLimited, type Limit } from "./log-limits.ts";

/** What can be wrong with an RPC endpoint. */
export const moods = [
  "refuses",
  "hangs",
  "says 429",
  "says 500",
  "loses answers to sends",
  "delivers twice",
  "drops what it has accepted",
  "lags behind",
  "forgets what became of transactions",
  "serves another chain",
  "answers errors with hostile words",
] as const;
export type Mood = (typeof moods)[number];

export type Endpoint = {
  readonly url: string;
  /** How it behaves from now on; undefined passes everything on as it is. What hangs is cut when the mood changes. */
  setMood(mood: Mood | undefined): void;
  /** How many calls have felt the present mood. */
  felt(): number;
  /** How much it gives in one eth_getLogs; without a limit until it is set. */
  limitLogs(limit: Limit | undefined): void;
  /** How many calls its limit has refused. */
  limited(): number;
};

/** What a kind of chain calls the things that can be wrong. */
export type Cluster = {
  /** The method that sends a transaction, and what a node answers that forgets it at once: its name, read off the bytes. */
  send: string;
  nameOf(call: Call): string;
  /** The method that says which chain it is, and what another chain says. */
  identity: { method: string; other: string };
  /** The method that tells what became of transactions; a node that has forgotten them answers like this. */
  receipts: string;
  forget(answer: Answer): Answer;
  /** Makes whoever asks hear what a node knows that is behind; made once per endpoint, and told every good answer. */
  lag(): { ask(ask: Ask, call: Call): Promise<Answer>; hear(call: Call, answer: Answer): void };
};

/** Blocks that a lagging node of an EVM chain is behind. */
const behind = 3;

export const evmCluster: Cluster = {
  send: "eth_sendRawTransaction",
  nameOf: ({ params }) => keccak256(params[0] as Hex),
  identity: { method: "eth_chainId", other: "0x1" },
  receipts: "eth_getTransactionReceipt",
  forget: () => ({ result: null }),
  lag: () => ({ ask: (ask, call) => askLagging(ask, call, behind), hear: () => undefined }),
};

/** A NUL, an escape sequence, half of a surrogate pair, a line feed, and more than anybody wants to store. */
const hostileWords = `execution reverted: \u0000\u001b[31m\ud83d\nlevel=error ${"x".repeat(20_000)}\udc00`;

type Frame = Call & { id: unknown };

/** A JSON-RPC endpoint before a chain, as bad as it is told to be. */
export async function startEndpoint({ target, cluster }: { target: string; cluster: Cluster }): Promise<Endpoint> {
  const lagging = cluster.lag();
  let mood: Mood | undefined;
  let felt = 0;
  let limit: Limit | undefined;
  let limited = 0;
  const hanging = new Set<IncomingMessage>();

  const ask = async ({ method, params }: Call): Promise<Answer> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const answered = await fetch(target, { method: "POST", headers: { "content-type": "application/json" }, body });
    const { result, error } = (await answered.json()) as Answer;
    const answer = error === undefined ? { result } : { error };
    lagging.hear({ method, params }, answer);
    return answer;
  };
  /** Where the endpoint limits its logs. */
  const askWithin = async (call: Call): Promise<Answer | undefined> => {
    const answer = limit && (await askLimited(ask, call, limit));
    if (answer?.error !== undefined) limited += 1;
    return answer;
  };
  const answerOne = async (call: Call): Promise<Answer> => {
    if (!isFelt(cluster, mood, call)) return (await askWithin(call)) ?? ask(call);
    felt += 1;
    if (mood === "answers errors with hostile words") return { error: { code: -32_000, message: hostileWords } };
    if (mood === "lags behind") return lagging.ask(ask, call);
    if (mood === "serves another chain") return { result: cluster.identity.other };
    if (mood === "forgets what became of transactions") return cluster.forget(await ask(call));
    if (mood === "drops what it has accepted") return { result: cluster.nameOf(call) };
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
    const isSend = frames.some(({ method }) => method === cluster.send);
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
    limitLogs(next) {
      limit = next;
    },
    limited: () => limited,
    setMood(next) {
      mood = next;
      felt = 0;
      for (const request of hanging) cut(request);
      hanging.clear();
    },
  };
}

/** Whether a call that reaches the chain is answered otherwise than it should be. */
function isFelt({ send, identity, receipts }: Cluster, mood: Mood | undefined, { method }: Call): boolean {
  if (mood === "loses answers to sends" || mood === "delivers twice" || mood === "drops what it has accepted")
    return method === send;
  if (mood === "serves another chain") return method === identity.method;
  if (mood === "forgets what became of transactions") return method === receipts;
  return mood === "lags behind" || mood === "answers errors with hostile words";
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
