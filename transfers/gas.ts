import type { Hex } from "viem";
import type { EvmChain } from "../chains/evm/open.ts";
import { readGasBalance } from "../chains/evm/send.ts";
import type { SolanaChain } from "../chains/solana/open.ts";
import { readAccounts } from "../chains/solana/reads.ts";
import type { TransferDeps } from "./deps.ts";

/** Interval between reads of the lanes' gas balances, milliseconds. */
const READ_EVERY_MS = 60_000;

/**
 * Keeps the gauge of the lanes' gas balances up to date, with one call per lane and minute. A lane whose balance cannot be
 * read keeps its last value. Returns a function that stops the updates.
 */
export function watchGasMoney(
  deps: Pick<TransferDeps, "chains" | "metrics" | "log">,
  everyMs: number = READ_EVERY_MS,
): () => void {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const update = async () => {
    await readGasBalances(deps);
    // Scheduled only now, because a read from an endpoint that hangs can take longer than a minute.
    if (!stopped) timer = setTimeout(() => void update(), everyMs).unref();
  };
  void update();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

async function readGasBalances(deps: Pick<TransferDeps, "chains" | "metrics" | "log">): Promise<void> {
  await Promise.all(
    [...deps.chains.values()].map((chain) =>
      chain.family === "evm" ? readChainsGasMoney(deps, chain) : readLamports(deps, chain),
    ),
  );
}

async function readChainsGasMoney(deps: Pick<TransferDeps, "metrics" | "log">, opened: EvmChain): Promise<void> {
  const { chain, rpc, network } = opened;
  for (const { address } of network.lanes) {
    const lane = address.toLowerCase() as Hex;
    try {
      deps.metrics.laneGasBalance.set({ chain, lane }, Number(await readGasBalance(rpc, lane)));
    } catch (err) {
      deps.log.warn({ err, chain, lane }, "lane's gas balance cannot be read");
    }
  }
}

async function readLamports(deps: Pick<TransferDeps, "metrics" | "log">, chain: SolanaChain): Promise<void> {
  try {
    const accounts = await readAccounts(chain, chain.lanes);
    for (const [index, lane] of chain.lanes.entries())
      deps.metrics.laneGasBalance.set({ chain: chain.chain, lane }, Number(accounts[index]?.lamports ?? 0n));
  } catch (err) {
    deps.log.warn({ err, chain: chain.chain }, "relayers' balances cannot be read");
  }
}
