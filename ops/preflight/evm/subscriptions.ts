import { once } from "node:events";
import { WebSocket } from "undici";
import { type Hex, hexToNumber } from "viem";
import { z } from "zod";
import type { EvmNetwork } from "../../../runtime/networks/read-networks.ts";
import { withTimeout } from "../../../runtime/timeout.ts";
import { failure, type Outcome, ok, warning } from "../finding.ts";
import type { Check } from "../run-checks.ts";

/** How long the endpoint may take to connect and to return both results, milliseconds. */
const TIMEOUT_MS = 5_000;

const Answer = z.object({ id: z.number(), result: z.string().optional() });

const name = "subscription";
const remedy = "Remove wsUrl, or choose a plan with eth_subscribe: until then the watcher only polls.";

/** Checks that an endpoint's WebSocket serves the chain and takes subscriptions to new blocks. None without a WebSocket. */
export function subscriptionChecks({ chain, rpc }: EvmNetwork, endpoint: string): Check[] {
  const wsUrl = rpc.find((entry) => entry.name === endpoint)?.wsUrl;
  return wsUrl === undefined ? [] : [{ name, run: async () => [await trySubscription(wsUrl, chain)] }];
}

async function trySubscription(wsUrl: string, chain: string): Promise<Outcome> {
  const { host } = new URL(wsUrl);
  const socket = new WebSocket(wsUrl);
  try {
    const answers = await withTimeout(ask(socket), TIMEOUT_MS, host).catch(() => undefined);
    if (answers === undefined) return warning(name, `the WebSocket at ${host} does not answer`, remedy);
    const id = hexToNumber((answers.get(1) ?? "0x0") as Hex);
    if (`eip155:${id}` !== chain)
      return failure(name, `the WebSocket at ${host} serves chain id ${id}`, `Replace wsUrl by one of ${chain}.`);
    if (answers.get(2) === undefined) return warning(name, `${host} takes no subscription to newHeads`, remedy);
    return ok(name, `${host} announces new blocks`);
  } finally {
    socket.close();
  }
}

/** Returns the chain id and the id of a subscription to new blocks, by the id of the call; undefined for a refused call. */
async function ask(socket: WebSocket): Promise<Map<number, string | undefined>> {
  await once(socket, "open");
  const answers = new Map<number, string | undefined>();
  const answered = new Promise<void>((resolve) => {
    socket.addEventListener("message", ({ data }) => {
      const answer = Answer.safeParse(JSON.parse(String(data))).data;
      if (answer) answers.set(answer.id, answer.result);
      if (answers.size === 2) resolve();
    });
  });
  for (const [id, method, params] of [[1, "eth_chainId", []] as const, [2, "eth_subscribe", ["newHeads"]] as const])
    socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  await answered;
  return answers;
}
