import type { Hex } from "viem";

/**
 * A token movement on a chain. `authorizationNonce` is the natural key, if the movement shows one: the nonce of its
 * EIP-3009 authorization or Permit2 signature, the tag of its push transaction, or its memo on Solana.
 */
export type TokenMovement = {
  /** Identifies the block on its chain: its hash on EVM chains, its slot on Solana. */
  blockId: string;
  blockNumber: number;
  txHash: string;
  /** Position of the log in its block. On Solana, position of the movement in its transaction. */
  logIndex: number;
  token: string;
  payer: string;
  receiver: string;
  amount: bigint;
  authorizationNonce: string | null;
  /** Block time in whole seconds; undefined if it was not read. */
  at?: Date | undefined;
};

/** A movement that the log of an EVM block shows. `blockId` is the block's hash. */
export type EvmMovement = TokenMovement & { blockId: Hex; txHash: Hex; token: Hex; payer: Hex; receiver: Hex };
