import { numberToHex, pad } from "viem";
import { parseAssetId } from "../../../chains/caip.ts";
import { TRANSFER_TOPIC } from "../../../chains/evm/abi.ts";
import { lowerCaseHex } from "../../../chains/evm/hex.ts";
import type { BlockRange } from "../../../chains/evm/log-ranges.ts";
import type { Call } from "../../../chains/json-rpc.ts";
import type { EvmNetwork } from "../../../runtime/networks/read-networks.ts";
import type { Head } from "../family.ts";
import { countOf, failure, type Outcome, ok, warning } from "../finding.ts";
import { type Check, describeProblem } from "../run-checks.ts";

/** Ranges beyond the network's `logRange`, in blocks. Providers limit ranges to one of these. */
const LARGER_RANGES = [500, 2_000, 10_000];
const DAY_MS = 86_400_000;

type ReadLogs = (range: BlockRange) => Promise<unknown>;

/** Finds out by trying how many blocks an endpoint reads the logs of at once, and whether it has yesterday's logs. */
export function logChecks(network: EvmNetwork, call: Call, { number: head }: Head): Check[] {
  const read = readTreasuryLogs(network, call);
  return [
    { name: "log range", run: async () => [await tryRanges(read, { head, logRange: network.logRange })] },
    {
      name: "log history",
      async run() {
        const block = Math.max(0, head - Math.floor(DAY_MS / network.blockMs));
        const error = await read({ from: block, to: block }).then(() => undefined, describeProblem);
        if (error === undefined) return [ok("log history", `has the logs of block ${block}`)];
        const detail = `refuses the logs of block ${block}, a day ago: ${error}`;
        return [
          warning("log history", detail, "Use an endpoint with history: workers read it after a day of downtime."),
        ];
      },
    },
  ];
}

/** Tries the service's own range and larger ones, or, if that is refused, smaller ones. */
async function tryRanges(read: ReadLogs, { head, logRange }: { head: number; logRange: number }): Promise<Outcome> {
  const name = "log range";
  const refusalOf = async (blocks: number): Promise<string | undefined> =>
    read({ from: Math.max(0, head - blocks + 1), to: head }).then(() => undefined, describeProblem);
  let largest = 0;
  let refusal: string | undefined;
  for (const blocks of [logRange, ...LARGER_RANGES.filter((one) => one > logRange)]) {
    refusal = await refusalOf(blocks);
    if (refusal !== undefined) break;
    largest = blocks;
  }
  if (largest > 0)
    return ok(name, `${countOf(largest, "block")} at once${refusal === undefined ? "" : `, not more: ${refusal}`}`);
  const first = refusal;
  for (let blocks = Math.floor(logRange / 2); blocks > 0; blocks = Math.floor(blocks / 2)) {
    refusal = await refusalOf(blocks);
    if (refusal !== undefined) continue;
    const detail = `${countOf(blocks, "block")} at once; logRange is ${logRange}: ${first}`;
    return warning(
      name,
      detail,
      "Set logRange to that, or use a plan with larger log ranges: catching up takes more calls.",
    );
  }
  return failure(
    name,
    `refuses the logs of one block: ${refusal}`,
    "Replace the endpoint: no payment is seen through it.",
  );
}

/** Reads the transfers to the treasury: few, so that the range is what an endpoint refuses. */
function readTreasuryLogs({ assets, treasury }: EvmNetwork, call: Call): ReadLogs {
  const address = assets.map(({ asset }) => parseAssetId(asset)?.token);
  const topics = [TRANSFER_TOPIC, null, pad(lowerCaseHex(treasury.address))];
  return ({ from, to }) =>
    call("eth_getLogs", [{ address, topics, fromBlock: numberToHex(from), toBlock: numberToHex(to) }]);
}
