import { countEndpoints } from "../../chains/endpoint-agreement.ts";
import { createCall } from "../../chains/json-rpc.ts";
import type { Network } from "../../runtime/networks/read-networks.ts";
import {
  checkHeadAge,
  compareFinalBlocks,
  compareHeads,
  type Endpoint,
  identifyEndpoint,
  readHead,
} from "./endpoints.ts";
import type { Family, PreflightDeps } from "./family.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";
import { checkLatency } from "./latency.ts";
import { openFamily } from "./open-family.ts";
import { type Check, runChecks } from "./run-checks.ts";

/** Runs checks at a place of one network. */
type Run = (checks: readonly Check[], endpoint?: string) => Promise<Finding[]>;

/**
 * Checks one chain of the networks file: each endpoint by itself, all at the same time, then the chain through the
 * endpoints that serve it, and the keys. Never throws.
 */
export async function checkNetwork(
  deps: PreflightDeps,
  network: Network,
  onStart: (text: string) => void,
): Promise<Finding[]> {
  const family = openFamily(deps, network);
  const endpoints = network.rpc.map(
    (entry): Endpoint => ({
      entry,
      host: new URL(entry.url).host,
      call: createCall(entry.url, network.rpcTimeoutMs).call,
    }),
  );
  const run: Run = (checks, endpoint) =>
    runChecks({ chain: network.chain, ...(endpoint === undefined ? {} : { endpoint }) }, checks, onStart);

  const identified = await Promise.all(
    endpoints.map((endpoint) => run([identifyEndpoint(family, endpoint, network.chain)], endpoint.entry.name)),
  );
  const serving = endpoints.filter((_one, index) => identified[index]?.every(({ status }) => status === "ok"));
  const checked = await checkServing({ family, network, serving, now: deps.now, run });
  const chainChecks = serving.length > 0 ? family.listChainChecks(serving.map(({ entry }) => entry)) : [unserved];
  return [
    ...endpoints.flatMap((endpoint, index) => [...(identified[index] ?? []), ...(checked.get(endpoint) ?? [])]),
    ...(await run([countCheck(network, endpoints), ...chainChecks, ...family.listKeyChecks()])),
  ];
}

/** Checks the endpoints that serve the chain, and compares them with each other. */
async function checkServing(args: {
  family: Family;
  network: Network;
  serving: readonly Endpoint[];
  now: () => Date;
  run: Run;
}): Promise<Map<Endpoint, Finding[]>> {
  const { family, network, serving, now, run } = args;
  // Heads are compared, so all of them are read at the same time.
  const heads = await Promise.all(serving.map((endpoint) => readHead(family, endpoint)));
  const compared = compareHeads(family, heads);
  const hashes = await compareFinalBlocks(family, serving);
  const listChecks = ({ call, entry }: Endpoint, index: number): Check[] => {
    const head = heads[index];
    if (head === undefined || "error" in head) return [{ name: "head", run: () => Promise.reject(head?.error) }];
    return [
      { name: "head age", run: async () => [checkHeadAge(family, network, head, now())] },
      { name: "head agreement", run: async () => compared[index] ?? [] },
      { name: "same block", run: async () => hashes[index] ?? [] },
      { name: "latency", run: async () => [await checkLatency(() => family.ping(call))] },
      ...family.listEndpointChecks(call, head, entry.name),
    ];
  };
  const findings = await Promise.all(
    serving.map((endpoint, index) => run(listChecks(endpoint, index), endpoint.entry.name)),
  );
  return new Map(serving.map((endpoint, index) => [endpoint, findings[index] ?? []]));
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
