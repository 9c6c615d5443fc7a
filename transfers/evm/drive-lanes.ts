import { ChainError } from "../../chains/errors.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { Signer } from "../../chains/evm/signers/signer.ts";
import { getEvmChain } from "../../chains/open-chains.ts";
import { freeLane, releaseLane, takeLane, wakeLanes } from "../../db/queries/lanes.ts";
import type { SendHandlers } from "../booking-handlers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { Lane, Pool } from "./claim-batch.ts";
import { noteSendTime, waitForInclusion } from "./forming-batches.ts";
import { LEASE_MS, wakeOwners } from "./lane-capacity.ts";
import { hasWalletLane, listLaneSigners } from "./lane-signers.ts";
import { sendBatch } from "./send-batch.ts";

/** Transactions that one run sends before it releases the lane, so that jobs end and the process can run others. */
const MAX_SENT = 20;

/**
 * Relays the ready transfers of a chain, except those of contract wallets, unless the lanes in use can send all of them. Returns
 * `more` when the run ended early and another one should follow.
 */
export async function relayReady(
  deps: TransferDeps,
  chainId: string,
  handlers: SendHandlers,
): Promise<"idle" | "more"> {
  const chain = getEvmChain(deps.chains, chainId);
  const { relayers } = listLaneSigners(deps, chain);
  if (relayers.length === 0) return "idle";
  // With a single lane, whether another worker holds it shows when it is taken.
  if (relayers.length > 1 && (await wakeOwners(deps, chain, "lanes"))) return "idle";
  const takes = hasWalletLane(chain) ? "keys" : "keys, then wallets";
  return drivePool(deps, chain, { signers: relayers, takes, handlers });
}

/**
 * Relays the ready transfers of contract wallets on a chain through their own lane, each in a transaction of its own. On a
 * chain with a single lane, they go one at a time and after all others.
 */
export async function relayWallets(
  deps: TransferDeps,
  chainId: string,
  handlers: SendHandlers,
): Promise<"idle" | "more"> {
  const chain = getEvmChain(deps.chains, chainId);
  const { wallets } = listLaneSigners(deps, chain);
  if (wallets.length === 0) return "idle";
  const takes = hasWalletLane(chain) ? "wallets" : "keys, then wallets";
  return drivePool(deps, chain, { signers: wallets, takes, handlers });
}

/**
 * Takes a free lane, sends batches until no transfer is ready, and releases the lane. When a lane can send nothing now, tries
 * the next one. When other workers hold all lanes, requests a wake-up of the lanes, and one of these workers relays the
 * transfers. When a lane's key cannot sign, the other lanes send, and the error is thrown after that.
 */
async function drivePool(deps: TransferDeps, chain: EvmChain, pool: Pool): Promise<"idle" | "more"> {
  const failed: ChainError[] = [];
  const end = await driveEach(deps, chain, pool, failed);
  if (failed[0]) throw failed[0];
  return end;
}

async function driveEach(
  deps: TransferDeps,
  chain: EvmChain,
  pool: Pool,
  failed: ChainError[],
): Promise<"idle" | "more"> {
  const signers = new Map<string, Signer>(pool.signers.map((signer) => [signer.address, signer]));
  const all = [...signers.keys()];
  for (;;) {
    const untried = [...signers.keys()];
    const wanted = { chain: chain.chain, addresses: untried, owner: deps.owner, leaseMs: LEASE_MS };
    const lease = await takeLane(deps.db, wanted);
    const signer = lease && signers.get(lease.address);
    if (lease && signer) {
      const end = await driveLane(deps, chain, { lease, signer, ...pool }).catch((error: unknown) => {
        if (!isSignerError(error)) throw error;
        failed.push(error);
        return "blocked" as const;
      });
      if (end !== "blocked") return end;
      signers.delete(lease.address);
    } else if (untried.length === 0 || (await wakeLanes(deps.db, { chain: chain.chain, addresses: all })))
      return "idle";
    // A lane may have become free between the two statements. Try again, unless some lanes were already tried.
    else if (signers.size < all.length) return "idle";
  }
}

const isSignerError = (error: unknown): error is ChainError =>
  error instanceof ChainError && (error.code === "signer_unavailable" || error.code === "signer_refused");

/** Sends the batches of one lane. Returns `blocked` when transfers may be ready and this lane can send no more now. */
async function driveLane(deps: TransferDeps, chain: EvmChain, lane: Lane): Promise<"idle" | "blocked" | "more"> {
  const { lease } = lane;
  // A batch forms once, so that a clock that stands still or steps back cannot hold it.
  let mayForm = true;
  try {
    for (let sent = 0; sent < MAX_SENT; ) {
      const began = performance.now();
      const result = await sendBatch(deps, chain, lane, mayForm);
      mayForm = typeof result !== "object";
      if (result === "sent") {
        sent += 1;
        noteSendTime(chain, performance.now() - began);
      } else if (typeof result === "object") await waitForInclusion(chain, result.waitMs);
      else if (result === "short") {
        // A requested wake brings no gas, and other lanes cannot take the transfers that this one has claimed.
        await freeLane(deps.db, lease);
        return "blocked";
      } else if ((await releaseLane(deps.db, lease)) !== "wake_requested") return result;
    }
  } catch (error) {
    // The watcher broadcasts transactions that are stored. Transfers of a batch that is not stored are still ready.
    await freeLane(deps.db, lease).catch(() => undefined);
    throw error;
  }
  await freeLane(deps.db, lease);
  return "more";
}
