import { countEndpoints } from "../../chains/endpoint-agreement.ts";
import { createCall } from "../../chains/solana/json-rpc.ts";
import type { Network } from "../../runtime/networks/read-networks.ts";
import {
  checkHeadAge,
  compareFinalBlocks,
  compareHeads,
  type Endpoint,
  identifyEndpoint,
  readHead,
} from "./endpoints.ts";
import { openFamily, type PreflightDeps } from "./family.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";
import { checkLatency } from "./latency.ts";
import { type Check, runChecks } from "./run-checks.ts";

/**
 * Checks one chain of the networks file: each endpoint by itself, all at the same time, then the chain through the
 * endpoints that serve it, and the keys. Never throws.
 */
export async function checkNetwork(
  deps: PreflightDeps,
  network: Network,
  onStart: (text: string) => void,
): Promise<Finding[]> {
  const { chain } = network;
  const family = openFamily(deps, network);
  const run = (checks: readonly Check[], endpoint?: string) =>
    runChecks({ chain, ...(endpoint === undefined ? {} : { endpoint }) }, checks, onStart);

  const endpoints = network.rpc.map(
    (entry): Endpoint => ({ entry, host: new URL(entry.url).host, call: createCall(entry.url, network.rpcTimeoutMs) }),
  );
  const identified = await Promise.all(
    endpoints.map((endpoint) => run([identifyEndpoint(family, endpoint, chain)], endpoint.entry.name)),
  );
  const serving = endpoints.filter((_one, index) => identified[index]?.every(({ status }) => status === "ok"));
  // Heads are compared, so all of them are read at the same time.
  const heads = await Promise.all(serving.map((endpoint) => readHead(family, endpoint)));
  const compared = compareHeads(family, heads);
  const hashes = await compareFinalBlocks(family, serving);
  const checked = await Promise.all(
    serving.map(async (endpoint, index): Promise<[Endpoint, Finding[]]> => {
      const head = heads[index];
      const checks =
        head === undefined || "error" in head
          ? [{ name: "head", run: () => Promise.reject(head?.error) }]
          : [
              { name: "head age", run: async () => [checkHeadAge(family, network, head, deps.now())] },
              { name: "head agreement", run: async () => compared[index] ?? [] },
              { name: "same block", run: async () => hashes[index] ?? [] },
              { name: "latency", run: async () => [await checkLatency(() => family.ping(endpoint.call))] },
              ...family.listEndpointChecks(endpoint.call, head),
            ];
      return [endpoint, await run(checks, endpoint.entry.name)];
    }),
  );
  const byEndpoint = new Map(checked);
  const chainChecks = serving.length > 0 ? family.listChainChecks(serving.map(({ entry }) => entry)) : [unserved];
  return [
    ...endpoints.flatMap((endpoint, index) => [...(identified[index] ?? []), ...(byEndpoint.get(endpoint) ?? [])]),
    ...(await run([countCheck(network, endpoints), ...chainChecks, ...family.listKeyChecks()])),
  ];
}

const unserved: Check = {
  name: "chain",
  run: async () => [
    failure(
      "chain",
      "no endpoint serves it, so nothing on it is checked",
      "Repair the endpoints, then run preflight again.",
    ),
  ],
};

/** Checks that endpoints of two providers are configured. A provider is known by the host. */
function countCheck(network: Network, endpoints: readonly Endpoint[]): Check {
  const count = countEndpoints(network);
  const hosts = new Set(endpoints.map(({ host }) => host)).size;
  const outcome =
    count === 1
      ? warning("endpoints", "its only endpoint is trusted without a check", "Add an endpoint of a second provider.")
      : hosts === 1
        ? warning("endpoints", `${count} endpoints of one host count as one`, "Add an endpoint of a second provider.")
        : ok("endpoints", `${count} endpoints at ${hosts} hosts`);
  return { name: "endpoints", run: async () => [outcome] };
}
