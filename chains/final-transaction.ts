import type { TokenMovement } from "./token-movement.ts";

/**
 * A transaction by the network's policy of finality: the movements that it made, none if it failed. `not_found`: no endpoint
 * knows it.
 */
export type FinalTransaction =
  | { state: "final"; movements: readonly TokenMovement[] }
  | { state: "not_final" }
  | { state: "not_found" };

/** How transactions are read. */
export type FinalReading = {
  /** The signed bytes of some of the transactions, supplied by anybody. Only Solana uses them. */
  signed?: ReadonlyMap<string, Uint8Array>;
  /**
   * Which movements into the treasury two endpoints must show: large ones (`agreementThreshold`, also when unset), or all of those
   * assets for which the networks file requires two endpoints for large ones.
   */
  agree?: "large" | "all";
};
