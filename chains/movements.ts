/**
 * A token movement found on a chain. `authorizationNonce` is its natural key, where it shows one: the nonce of the
 * EIP-3009 authorization or of the Permit2 signature that made it, the tag of the push that did, or a memo on Solana.
 */
export type SeenTransfer = {
  /** On Solana the slot, as a text: its transactions' statuses name no block hash. */
  blockHash: string;
  blockNumber: number;
  txHash: string;
  /** Position of the log in its block; on Solana of the movement in its transaction. */
  logIndex: number;
  token: string;
  payer: string;
  receiver: string;
  amount: bigint;
  authorizationNonce: string | null;
  /**
   * The nonces of all authorizations that the payer has used on this token in the same transaction, where the logs do not
   * say which of them this movement is; `authorizationNonce` is then the most likely one, or null.
   */
  usedNonces?: readonly string[];
  /** The chain's own time of it, whole seconds; undefined where the reading does not say. */
  at?: Date | undefined;
};
