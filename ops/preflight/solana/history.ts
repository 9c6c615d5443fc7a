import type { Call } from "../../../chains/json-rpc.ts";
import { askFirstBlock } from "../../../chains/solana/first-block.ts";
import type { SolanaNetwork } from "../../../runtime/networks/read-networks.ts";
import type { Head } from "../family.ts";
import { failure, ok, warning } from "../finding.ts";
import { type Check, describeProblem } from "../run-checks.ts";

const DAY_MS = 86_400_000;

/** Checks that an endpoint lists the transactions of an account, and how far back its blocks go. */
export function historyChecks({ treasury, slotMs }: SolanaNetwork, call: Call, head: Head): Check[] {
  const name = "account history";
  return [
    {
      name,
      async run() {
        const params = [treasury.address, { limit: 1_000, commitment: "finalized" }];
        const error = await call("getSignaturesForAddress", params).then(() => undefined, describeProblem);
        if (error !== undefined)
          return [failure(name, `getSignaturesForAddress: ${error}`, "Use an endpoint that serves account histories.")];
        const { slot: first, height } = await askFirstBlock(call);
        if (height === undefined)
          return [failure(name, `getBlock does not return slot ${first}`, "Use an endpoint that serves blocks.")];
        const days = ((head.number - first) * slotMs) / DAY_MS;
        const detail = `from slot ${first} on, ${days.toFixed(1)} days`;
        if (first === 0 || days >= 1) return [ok(name, detail)];
        return [warning(name, detail, "Use an endpoint with more history: workers read it after a day of downtime.")];
      },
    },
  ];
}
