import type { TokenMovement } from "./token-movement.ts";

/**
 * A transaction by the network's policy of finality: the movements that it made, none if it failed. `not_found`: no endpoint
 * knows it. `isBySignedBytes`: the movement is the one of signed bytes that the caller supplied, and the network shows that they
 * were executed.
 */
export type FinalTransaction =
  | { state: "final"; movements: readonly TokenMovement[]; isBySignedBytes?: true }
  | { state: "not_final" }
  | { state: "not_found" };

/** A movement, and the number of the block in which an endpoint has shown it. */
export type KnownMovement = Omit<TokenMovement, "blockId">;

/** How transactions are read. */
export type FinalReading = {
  /** The signed bytes of some of the transactions, supplied by anybody. Only Solana uses them. */
  signed?: ReadonlyMap<string, Uint8Array>;
  /** Movements that an earlier reading has taken from signed bytes (`isBySignedBytes`), by hash: in place of the bytes. Only Solana uses them. */
  known?: ReadonlyMap<string, KnownMovement>;
  /**
   * Which movements into the treasury two endpoints must show: large ones (`agreementThreshold`, also when unset), or all of those
   * assets for which the networks file requires two endpoints for large ones.
   */
  agree?: "large" | "all";
};
