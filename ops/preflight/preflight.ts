import { checkNetwork } from "./check-network.ts";
import { clockCheck } from "./clock.ts";
import type { PreflightDeps } from "./family.ts";
import type { Finding } from "./finding.ts";
import { runChecks } from "./run-checks.ts";
import { screeningListCheck } from "./screening-list.ts";

/**
 * Checks everything that the networks file names, all chains at the same time. It sends no transaction and needs no
 * database. Never throws.
 * @param onStart is called with the name of each check when it starts
 */
export async function runPreflight(deps: PreflightDeps, onStart: (text: string) => void): Promise<Finding[]> {
  const findings = await Promise.all([
    runChecks({ chain: "all" }, [clockCheck(deps), screeningListCheck(deps)], onStart),
    ...deps.networks.chains.map((network) => checkNetwork(deps, network, onStart)),
  ]);
  return findings.flat();
}
