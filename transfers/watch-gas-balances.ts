import { withCallPriority } from "../chains/call-priority.ts";
import { repeatEvery } from "../runtime/repeat.ts";
import { getTransferDriver } from "./find-transfer-driver.ts";
import type { TransferDeps } from "./transfer-deps.ts";
import type { GasDeps, LaneFunds } from "./transfer-driver.ts";

/** Interval between reads of the lanes' gas balances, milliseconds. */
const READ_EVERY_MS = 60_000;

/** The watch of the lanes' gas balances. `listShort` returns the lanes that held too little when they were read last. */
export type GasWatch = { stop: () => void; listShort: () => LaneFunds[] };

/**
 * Keeps the gauges of the lanes' accounts up to date, with two calls per lane and minute on EVM chains, and logs once when a lane holds
 * less than it needs, and when it holds enough again. A lane whose balance cannot be read keeps its last value.
 */
export function watchGasBalances(
  deps: GasDeps & Pick<TransferDeps, "chains">,
  everyMs: number = READ_EVERY_MS,
): GasWatch {
  const short = new Map<string, LaneFunds>();
  const note = (funds: LaneFunds) => {
    const key = `${funds.chain} ${funds.lane}`;
    const fields = { ...funds, balance: String(funds.balance), needs: String(funds.needs) };
    if (funds.balance >= funds.needs) {
      if (short.delete(key)) deps.log.info(fields, "lane has enough native money for gas again");
      return;
    }
    if (!short.has(key)) deps.log.warn(fields, "lane has too little native money for gas: send it some");
    short.set(key, funds);
  };
  const stop = repeatEvery(everyMs, () =>
    withCallPriority("convenience", async () => {
      const read = [...deps.chains.values()].map((chain) => getTransferDriver(chain).readGasBalances(deps));
      for (const funds of (await Promise.all(read)).flat()) note(funds);
    }),
  );
  return { stop, listShort: () => [...short.values()] };
}
