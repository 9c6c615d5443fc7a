import type { Call } from "../../chains/json-rpc.ts";
import type { Network, Networks } from "../../runtime/networks/read-networks.ts";
import type { Check } from "./run-checks.ts";

/** What the checks work with. `now` is this machine's clock. */
export type PreflightDeps = { networks: Networks; env: NodeJS.ProcessEnv; now: () => Date };

/** The newest block of an endpoint. `at` is its time, undefined if the endpoint does not know it. */
export type Head = { number: number; at: Date | undefined };

/** The parts of preflight that differ between the chain families, for one network. Calls go to one endpoint directly. */
export type Family = {
  /** What a height counts. */
  readonly unit: "block" | "slot";
  /** Usual time between two heights, milliseconds. */
  readonly blockMs: number;
  /** True when the network names an oracle that screens accounts. */
  readonly hasOracle: boolean;
  /** Asks for the chain: the CAIP-2 id, and a description for people. */
  identify(call: Call): Promise<{ chain: string; description: string }>;
  readHead(call: Call): Promise<Head>;
  /** Makes a cheap call that no endpoint answers from a cache. */
  ping(call: Call): Promise<unknown>;
  /** Returns the hash of the newest block that is final at all of these endpoints. Solana has none that is cheap to read. */
  readFinalHashes?(calls: readonly Call[]): Promise<{ number: number; hashes: (string | undefined)[] }>;
  /** Lists the checks of one endpoint, by its name in the networks file. */
  listEndpointChecks(call: Call, head: Head, endpoint: string): Check[];
  /** Lists the checks of the chain itself. They call only these endpoints, in this order. */
  listChainChecks(rpc: Network["rpc"]): Check[];
  listKeyChecks(): Check[];
};
