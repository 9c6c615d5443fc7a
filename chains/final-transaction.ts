import type { TokenMovement } from "./token-movement.ts";

/**
 * A transaction by the network's policy of finality: the movements that it made, none if it failed. `not_found`: no endpoint
 * knows it.
 */
export type FinalTransaction =
  | { state: "final"; movements: readonly TokenMovement[] }
  | { state: "not_final" }
  | { state: "not_found" };
