import { z } from "zod";
import { parseAssetId } from "../../../chains/caip.ts";
import type { Call } from "../../../chains/json-rpc.ts";
import type { SolanaNetwork } from "../../../runtime/networks/read-networks.ts";
import { failure, ok, warning } from "../finding.ts";
import { type Check, describeProblem } from "../run-checks.ts";

const Listed = z.array(z.object({ signature: z.string(), err: z.unknown() }));
const Shown = z.object({ meta: z.object({ innerInstructions: z.array(z.unknown()).nullish() }) });

/**
 * Checks that an endpoint records the inner instructions of transactions, by one that names the first mint: they are null, and not
 * empty, where it does not. Finds nothing for a mint without transactions.
 */
export function innerInstructionChecks({ assets }: SolanaNetwork, call: Call): Check[] {
  const name = "inner instructions";
  const mint = parseAssetId(assets[0]?.asset ?? "")?.token;
  return [
    {
      name,
      async run() {
        const bounds = { limit: 100, commitment: "finalized" };
        const listed = Listed.parse(await call("getSignaturesForAddress", [mint, bounds]));
        // A failed transaction may not have run, and has none then.
        const made = listed.find(({ err }) => err === null);
        if (!made) return [];
        const options = { commitment: "finalized", maxSupportedTransactionVersion: 0 };
        const shown = await call("getTransaction", [made.signature, options]).then(
          (answer) => Shown.parse(answer),
          (error: unknown) => describeProblem(error),
        );
        if (typeof shown === "string")
          return [failure(name, `getTransaction: ${shown}`, "Use an endpoint that serves transactions.")];
        if (shown.meta.innerInstructions) return [ok(name, "are recorded")];
        const remedy =
          "Use an endpoint that records them (--enable-extended-tx-metadata-storage): workers need them for deposits from smart wallets.";
        return [warning(name, "are not recorded", remedy)];
      },
    },
  ];
}
