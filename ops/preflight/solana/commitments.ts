import { z } from "zod";
import type { Call } from "../../../chains/json-rpc.ts";
import type { SolanaNetwork } from "../../../runtime/networks/read-networks.ts";
import { countOf, failure, ok, warning } from "../finding.ts";
import type { Check } from "../run-checks.ts";

/** Finality takes 32 slots. An endpoint further behind than this reports no final slots any more. */
const USUAL_LAG = 150;

/** Returns the newest slot of an endpoint at a commitment. Throws ChainError. */
export async function readSlot(call: Call, commitment: "confirmed" | "finalized"): Promise<number> {
  return z.number().parse(await call("getSlot", [{ commitment }]));
}

/** Checks how far an endpoint's final slots are below its newest confirmed one. */
export function commitmentChecks({ finality }: SolanaNetwork, call: Call): Check[] {
  const name = "finalized";
  return [
    {
      name,
      async run() {
        const [confirmed, final] = await Promise.all([readSlot(call, "confirmed"), readSlot(call, name)]);
        const behind = Math.max(0, confirmed - final);
        const detail = `${countOf(behind, "slot")} below the newest confirmed one`;
        if (behind <= USUAL_LAG) return [ok(name, detail)];
        const remedy = "Wait until the cluster makes slots final again, or replace the endpoint.";
        return [finality === name ? failure(name, detail, remedy) : warning(name, detail, remedy)];
      },
    },
  ];
}
