import type { Hex } from "viem";
import type { EvmChain } from "../chains/evm/open.ts";
import { readGasBalance } from "../chains/evm/send.ts";
import type { SolanaChain } from "../chains/solana/open.ts";
import { readAccounts } from "../chains/solana/reads.ts";
import type { TransferDeps } from "./deps.ts";

/** How often the gas money of the lanes is looked at, milliseconds. */
const LOOK_EVERY_MS = 60_000;

/**
 * Keeps the gauge of the lanes' gas money fresh: one call per lane and minute, however much they send. A lane whose
 * balance cannot be asked keeps its last one. Gives what stops it.
 */
export function watchGasMoney(
  deps: Pick<TransferDeps, "chains" | "metrics" | "log">,
  everyMs: number = LOOK_EVERY_MS,
): () => void {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const look = async () => {
    await readGasMoney(deps);
    // Only now: a look at an RPC that hangs may take longer than a minute.
    if (!stopped) timer = setTimeout(() => void look(), everyMs).unref();
  };
  void look();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

async function readGasMoney(deps: Pick<TransferDeps, "chains" | "metrics" | "log">): Promise<void> {
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
      deps.log.warn({ err, chain, lane }, "the lane's gas money is not known");
    }
  }
}

async function readLamports(deps: Pick<TransferDeps, "metrics" | "log">, chain: SolanaChain): Promise<void> {
  try {
    const accounts = await readAccounts(chain, chain.lanes);
    for (const [index, lane] of chain.lanes.entries())
      deps.metrics.laneGasBalance.set({ chain: chain.chain, lane }, Number(accounts[index]?.lamports ?? 0n));
  } catch (err) {
    deps.log.warn({ err, chain: chain.chain }, "the relayers' money is not known");
  }
}
