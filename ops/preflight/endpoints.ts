import { maxBehind } from "../../chains/endpoint-heights.ts";
import type { Call } from "../../chains/json-rpc.ts";
import type { Network } from "../../runtime/networks/read-networks.ts";
import { isLiveHead } from "../../transfers/head-age.ts";
import type { Family, Head } from "./family.ts";
import { countOf, failure, type Outcome, ok, warning } from "./finding.ts";
import { type Check, describeProblem } from "./run-checks.ts";

/** One endpoint of a network, called directly. `host` is the part of its URL that contains no secret. */
export type Endpoint = { entry: Network["rpc"][number]; host: string; call: Call };

/** Checks that an endpoint answers and serves the chain. */
export function identifyEndpoint(family: Family, { host, call }: Endpoint, chain: string): Check {
  const name = "chain id";
  return {
    name,
    async run() {
      const found = await family.identify(call);
      if (found.chain === chain) return [ok(name, `${found.description} at ${host}`)];
      return [failure(name, `${host} serves ${found.description}`, `Replace the URL by one of ${chain}.`)];
    },
  };
}

/** Returns whether an endpoint follows its chain. */
export function checkHeadAge(
  { unit }: Pick<Family, "unit">,
  network: Network,
  { number, at }: Head,
  now: Date,
): Outcome {
  const name = "head age";
  const age = at === undefined ? undefined : Math.round((now.getTime() - at.getTime()) / 1_000);
  const detail = `${unit} ${number}, ${age === undefined ? "of unknown time" : `${age} s old`}`;
  if (isLiveHead(network, at, now)) return ok(name, detail);
  return failure(
    name,
    detail,
    "Replace the endpoint, which does not follow the chain, unless this machine's clock is wrong.",
  );
}

/** Endpoints of a healthy chain may be this far apart, whichever of the two is more. */
const USUAL = { ms: 5_000, heights: 2 };

/** A head, or the error of reading it. */
type ReadHead = Head | { error: unknown };

/** Reads the newest head of an endpoint. Never throws. */
export function readHead(family: Family, { call }: Endpoint): Promise<ReadHead> {
  return family.readHead(call).catch((error: unknown) => ({ error }));
}

/** Compares the heads that were read at the same time. Returns the outcomes of each endpoint, none for a single one. */
export function compareHeads(
  { blockMs, unit }: Pick<Family, "blockMs" | "unit">,
  heads: readonly ReadHead[],
): Outcome[][] {
  const name = "head agreement";
  const numbers = heads.flatMap((head) => ("error" in head ? [] : [head.number]));
  if (numbers.length < 2) return heads.map(() => []);
  const newest = Math.max(...numbers);
  const usual = Math.max(USUAL.heights, USUAL.ms / blockMs);
  return heads.map((head) => {
    if ("error" in head) return [];
    const behind = newest - head.number;
    const detail = behind === 0 ? "at the newest head" : `${countOf(behind, unit)} behind the newest head`;
    if (behind > maxBehind(blockMs))
      return [failure(name, detail, "Replace the endpoint: the service skips it, and large amounts wait for it.")];
    if (behind > usual)
      return [warning(name, detail, "Watch the endpoint: it delays payments when it is the first of the list.")];
    return [ok(name, detail)];
  });
}

/**
 * Compares the newest block that is final at every endpoint. Returns the outcomes of each endpoint: none where there is
 * nothing to compare. Never throws.
 */
export async function compareFinalBlocks(
  family: Pick<Family, "readFinalHashes">,
  endpoints: readonly Pick<Endpoint, "call">[],
): Promise<Outcome[][]> {
  const name = "same block";
  const read = family.readFinalHashes;
  if (!read || endpoints.length < 2) return endpoints.map(() => []);
  try {
    const { number, hashes } = await read(endpoints.map(({ call }) => call));
    const expected = hashes.find((hash) => hash !== undefined);
    return hashes.map((hash) => {
      if (hash !== undefined && hash === expected)
        return [ok(name, `final block ${number} is the same at all endpoints`)];
      const detail = hash === undefined ? `final block ${number} is missing` : `final block ${number} is another one`;
      return [failure(name, detail, "Replace the endpoint that is on a fork: nothing is booked while they disagree.")];
    });
  } catch (error) {
    const outcome = warning(
      name,
      `not compared: ${describeProblem(error)}`,
      "Correct the other rows, then run preflight again.",
    );
    return endpoints.map(() => [outcome]);
  }
}
