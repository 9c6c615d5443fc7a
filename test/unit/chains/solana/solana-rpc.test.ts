import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import type { SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { broadcastBytes } from "../../../../chains/solana/solana-broadcast.ts";
import { openEndpoints } from "../../../../chains/solana/solana-rpc.ts";
import { listSignatures } from "../../../../chains/solana/transaction-history.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import type { SolanaNetwork } from "../../../../runtime/networks/read-networks.ts";
import { listen } from "../../../support/listen.ts";

type Frame = { id: number; method: string; params: unknown[] };

const genesis = "11111111111111111111111111111112xxxxxxxxxxxxxxx";

/** Starts an endpoint, and opens a cluster that has it and perhaps a second one. */
async function openCluster(...answers: ((frame: Frame) => object)[]) {
  const rpc = await Promise.all(
    answers.map(async (answer, index) => {
      const respond = (frame: Frame) =>
        frame.method === "getGenesisHash" ? { result: genesis } : { jsonrpc: "2.0", ...answer(frame) };
      const server = createServer(async (request, response) => {
        const body = JSON.parse(await text(request)) as Frame | Frame[];
        const one = (frame: Frame) => ({ jsonrpc: "2.0", id: frame.id, ...respond(frame) });
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(Array.isArray(body) ? body.map(one) : one(body)));
      });
      return { name: `endpoint-${index}`, url: await listen(server) };
    }),
  );
  const registry = new Registry();
  const network = { chain: `solana:${genesis.slice(0, 32)}`, name: "Test", rpc, rpcTimeoutMs: 5_000, slotMs: 400 };
  const { rpc: opened } = openEndpoints(network as unknown as SolanaNetwork, createMetrics(registry, "worker"));
  return { chain: { rpc: opened } as SolanaChain, metrics: () => registry.metrics() };
}

test("an endpoint that has not reached the slot of a request is passed over, in favour of one that has", async () => {
  const error = { code: -32_016, message: "Minimum context slot has not been reached" };
  const listed = [{ signature: "a", slot: 7, err: null, memo: null }];
  const { chain } = await openCluster(
    () => ({ error }),
    () => ({ result: listed }),
  );
  expect(await listSignatures(chain, { account: "treasury", atSlot: 7 })).toEqual([
    { signature: "a", slot: 7, failed: false, memo: "" },
  ]);
});

test("every transaction of a batch counts as a call, as providers bill them", async () => {
  const { chain, metrics } = await openCluster(() => ({ result: "signature" }));
  const sent = await broadcastBytes(chain, [Uint8Array.of(1), Uint8Array.of(2), Uint8Array.of(3)]);
  expect(sent).toEqual(Array(3).fill({ outcome: "accepted" }));
  expect(await metrics()).toMatch(/pay_rpc_calls_total\{[^}]*method="sendTransaction"[^}]*\} 3\n/);
});
