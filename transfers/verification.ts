import type { Hex } from "viem";
import type { Kind } from "../db/tables.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/** Dependencies of a verification. */
export type VerifyDeps = Pick<TransferDeps, "db" | "chains" | "screeningList" | "metrics" | "now">;

/** The members of a transfer or an option from which its authorization is built. */
export type AuthorizationRow = {
  kind: Kind;
  asset: string;
  token: Hex;
  payer: Hex;
  receiver: Hex;
  amount: bigint;
  valid_before: number;
  authorization_nonce: Hex;
};

/**
 * A row with the proof that the buyer's wallet returned. `proof` is the signature; for a push it is the hash of the
 * transaction, and on Solana the signed transaction in base64. `permit` is the EIP-2612 signature for Permit2, if any.
 */
export type Signed = AuthorizationRow & { chain: string; proof: string; permit: Hex | null };

/**
 * The result of a verification. `validBefore` is the last block height at which a Solana transaction can be included.
 * `codeHash` is the hash of a contract wallet's code. `counted` has the ids of the payer's other transfers whose amounts were
 * subtracted from its balance. `later` means that the transfer cannot be verified yet, for example because our endpoint does
 * not know the transaction; `pending` means that the transaction is known and in no block. `byCode` means that the payer is
 * a contract, which is verified separately from plain keys.
 */
export type VerificationResult =
  | {
      ok: true;
      smartWallet: boolean;
      codeHash?: string | undefined;
      validBefore?: number;
      counted?: ReadonlySet<string>;
    }
  | { ok: false; reason: string; later?: true | "pending"; byCode?: true };
