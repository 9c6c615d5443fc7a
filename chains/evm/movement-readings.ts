import type { EvmMovement } from "../token-movement.ts";
import type { Rpc } from "./evm-rpc.ts";
import { type KeptReadings, openKeptReadings } from "./kept-readings.ts";
import type { EvmChain } from "./open-evm-chain.ts";

/**
 * How long a movement is kept after its last use, milliseconds: longer than a provider suspends us. An endpoint that lied once
 * does not count for longer.
 */
const KEPT_MS = 5 * 60_000;
/** Movements that are kept of each endpoint: some 20 MB, and more than the blocks that are read together contain. */
const MAX_MOVEMENTS = 20_000;

// One for each endpoint: no endpoint may vouch for what another one has shown.
const readings = new WeakMap<Rpc, KeptReadings<EvmMovement>>();

/** Returns a movement with its natural key, if this endpoint has shown that for the same block and transaction. */
export function findMovement(chain: EvmChain, movement: EvmMovement): EvmMovement | undefined {
  return readings.get(chain.rpc)?.find(keyOf(chain, movement));
}

/**
 * Keeps movements that an endpoint has shown with their natural keys. An endpoint that limits the rate of calls breaks a
 * reading off, and the reading is repeated from its start: without these it would end at the same place each time.
 */
export function keepMovements(chain: EvmChain, movements: readonly EvmMovement[]): void {
  const kept = readings.get(chain.rpc) ?? openKeptReadings({ keptMs: KEPT_MS, maxSize: MAX_MOVEMENTS });
  readings.set(chain.rpc, kept);
  for (const movement of movements) kept.keep(keyOf(chain, movement), movement);
}

/**
 * Returns what identifies a movement. The block's hash prevents a use after a reorg, and the treasury's contracts decide
 * which natural keys movements have.
 */
const keyOf = ({ treasury }: EvmChain, { blockId, txHash, logIndex }: EvmMovement) =>
  `${treasury} ${blockId} ${txHash} ${logIndex}`;
