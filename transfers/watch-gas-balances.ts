import { withCallPriority } from "../chains/call-priority.ts";
import { repeatEvery } from "../runtime/repeat.ts";
import type { TransferDeps } from "./transfer-deps.ts";
import { type GasDeps, getTransferDriver } from "./transfer-driver.ts";

/** Interval between reads of the lanes' gas balances, milliseconds. */
const READ_EVERY_MS = 60_000;

/**
 * Keeps the gauge of the lanes' gas balances up to date, with one call per lane and minute. A lane whose balance cannot be
 * read keeps its last value. Returns a function that stops the updates.
 */
export function watchGasBalances(
  deps: GasDeps & Pick<TransferDeps, "chains">,
  everyMs: number = READ_EVERY_MS,
): () => void {
  return repeatEvery(everyMs, () =>
    withCallPriority("convenience", async () => {
      await Promise.all([...deps.chains.values()].map((chain) => getTransferDriver(chain).readGasBalances(deps)));
    }),
  );
}
