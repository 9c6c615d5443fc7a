/**
 * A token movement on a chain. `authorizationNonce` is the natural key, if the movement shows one: the nonce of its
 * EIP-3009 authorization or Permit2 signature, the tag of its push transaction, or its memo on Solana.
 */
export type TokenMovement = {
  /** On Solana, the slot as text: transaction statuses carry no block hash. */
  blockHash: string;
  blockNumber: number;
  txHash: string;
  /** Position of the log in its block. On Solana, position of the movement in its transaction. */
  logIndex: number;
  token: string;
  payer: string;
  receiver: string;
  amount: bigint;
  authorizationNonce: string | null;
  /**
   * Set if the logs do not show which authorization made this movement: the nonces of all authorizations that the payer
   * used on this token in the transaction. `authorizationNonce` is then the most likely one, or null.
   */
  candidateNonces?: readonly string[];
  /** Block time in whole seconds; undefined if it was not read. */
  at?: Date | undefined;
};
