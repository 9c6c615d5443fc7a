import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import * as shared from "../endpoint-waits.ts";
import type { TransferDeps } from "../transfer-deps.ts";

export type { Waits } from "../endpoint-waits.ts";

/** Returns true when the endpoints of an EVM chain have been behind for too long. */
export function hasWaitedLongEnough(
  deps: Pick<TransferDeps, "now">,
  { endpoints: of, network: { blockMs } }: EvmChain,
  { waits, ...heights }: { waits: shared.Waits; wanted: number; reached: number },
): boolean {
  return shared.hasWaitedLongEnough(deps, { waits, of, blockMs }, heights);
}

/** Returns how long an endpoint that is behind is waited for, milliseconds. */
export const maxBehindMs = ({ blockMs }: Pick<EvmChain["network"], "blockMs">): number => shared.maxBehindMs(blockMs);
