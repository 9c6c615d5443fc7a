import type { Chain } from "../chains/chain.ts";
import { countEndpoints } from "../chains/endpoint-agreement.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/** Sets the counters of a chain that alerts use to 0. A series that begins with its first count would show no increase. */
export function initializeCounters({ metrics }: Pick<TransferDeps, "metrics">, { chain, network }: Chain): void {
  for (const counter of [metrics.reorgs, metrics.finalReorgs, metrics.agreementWaits, metrics.quoteContradictions])
    counter.inc({ chain }, 0);
  if (countEndpoints(network) > 1) metrics.singleEndpointConfirmations.inc({ chain }, 0);
  for (const { name: endpoint } of network.rpc) metrics.endpointDisagreements.inc({ chain, endpoint }, 0);
  metrics.screeningFailures.inc({ chain, provider: "list" }, 0);
}
