import { withCallPriority } from "../chains/call-priority.ts";
import { repeatEvery } from "../runtime/repeat.ts";
import { getTransferDriver } from "./find-transfer-driver.ts";
import type { TransferDeps } from "./transfer-deps.ts";
import type { GasDeps } from "./transfer-driver.ts";

/** Interval between reads of the tokens' states, milliseconds. A read takes five calls per token. */
const READ_EVERY_MS = 300_000;

/**
 * Keeps the gauges of what issuers have done with the tokens up to date: upgrades, pauses and a blocked treasury. Returns a
 * function that stops the updates.
 */
export function watchIssuers(
  deps: GasDeps & Pick<TransferDeps, "chains">,
  everyMs: number = READ_EVERY_MS,
): () => void {
  return repeatEvery(everyMs, () =>
    withCallPriority("convenience", async () => {
      await Promise.all([...deps.chains.values()].map((chain) => getTransferDriver(chain).readIssuerActions(deps)));
    }),
  );
}
