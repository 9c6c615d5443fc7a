import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { Registry } from "prom-client";
import type { SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { openEndpoints } from "../../../../chains/solana/solana-rpc.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import type { SolanaNetwork } from "../../../../runtime/networks/read-networks.ts";
import { listen } from "../../../support/listen.ts";

/** A call to an endpoint. */
export type Frame = { id: number; method: string; params: unknown[] };
/** An endpoint's response to a call or a batch; its status is 200 when unset. */
export type Response = { status?: number; headers?: Record<string, string>; body?: unknown };
/** Returns undefined for a request that is never answered. */
type Answer = (body: Frame | Frame[]) => Response | undefined;
type Endpoint = { answer: Answer; callsPerMinute?: number };

const genesis = "11111111111111111111111111111112xxxxxxxxxxxxxxx";

/** Answers a call, and each call of a batch, with a result or an error. */
export function answerEach(answer: (frame: Frame) => object): Answer {
  const one = (frame: Frame) => ({ jsonrpc: "2.0", id: frame.id, ...answer(frame) });
  return (body) => ({ body: Array.isArray(body) ? body.map(one) : one(body) });
}

/** Starts endpoints, and opens a cluster that has them. `requests` has the bodies that each of them received, in order. */
export async function openCluster(...endpoints: Endpoint[]) {
  const requests = endpoints.map((): (Frame | Frame[])[] => []);
  const rpc = await Promise.all(
    endpoints.map(async ({ answer, callsPerMinute }, index) => {
      const server = createServer(async (request, response) => {
        const body = JSON.parse(await text(request)) as Frame | Frame[];
        const isCheck = !Array.isArray(body) && body.method === "getGenesisHash";
        if (!isCheck) requests[index]?.push(body);
        const shown = isCheck ? answerEach(() => ({ result: genesis }))(body) : answer(body);
        if (!shown) return;
        const { status = 200, headers, body: answered } = shown;
        response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(answered));
      });
      return { name: `endpoint-${index}`, url: await listen(server), callsPerMinute };
    }),
  );
  const registry = new Registry();
  const network = { chain: `solana:${genesis.slice(0, 32)}`, name: "Test", rpc, rpcTimeoutMs: 5_000, slotMs: 400 };
  const { rpc: opened } = openEndpoints(network as unknown as SolanaNetwork, createMetrics(registry, "worker"));
  return { chain: { rpc: opened } as SolanaChain, requests, metrics: () => registry.metrics() };
}
