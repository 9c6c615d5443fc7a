import type { Call } from "../../../chains/json-rpc.ts";
import type { EvmNetwork } from "../../../runtime/networks/read-networks.ts";
import type { Head } from "../family.ts";
import { countOf, failure, ok, warning } from "../finding.ts";
import { type Check, describeProblem } from "../run-checks.ts";
import { readBlock } from "./read-block.ts";

/** Checks that an endpoint knows the chain's own tags of finality. A missing tag is an error where the network uses it. */
export function finalityChecks({ finality }: EvmNetwork, call: Call, head: Head): Check[] {
  return (["safe", "finalized"] as const).map((tag) => ({
    name: tag,
    async run() {
      try {
        const { number } = await readBlock(call, tag);
        return [ok(tag, `${countOf(Math.max(0, head.number - number), "block")} below the head`)];
      } catch (error) {
        const detail = `the endpoint has no such block: ${describeProblem(error)}`;
        if (finality === tag)
          return [failure(tag, detail, "Replace the endpoint, or set finality to a number of blocks.")];
        return [warning(tag, detail, "Nothing to do while finality does not name this tag.")];
      }
    },
  }));
}

/** Returns the height of the newest block that an endpoint counts as final. Throws ChainError. */
export async function readFinalHeight({ finality }: EvmNetwork, call: Call): Promise<number> {
  if (typeof finality === "string") return (await readBlock(call, finality)).number;
  return Math.max(0, (await readBlock(call, "latest")).number - finality.blocks);
}
