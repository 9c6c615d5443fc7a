import type { Hex } from "viem";
import type { AuthorizationRow } from "./authorization.ts";

/**
 * What a buyer's wallet handed over for a row. `proof` is its signature, for a push the hash of its transaction, on Solana
 * its signed transaction in base64; `permit` the EIP-2612 signature that came before it, if one did.
 */
export type Signed = AuthorizationRow & { chain: string; proof: string; permit: Hex | null };

/**
 * `validBefore` is the last block height at which a Solana transaction can land. `later`: it cannot be verified yet,
 * for example because a transaction is not known to our endpoint so far; `pending`: it is known and in no block.
 */
export type Verdict =
  | { ok: true; smartWallet: boolean; validBefore?: number }
  | { ok: false; reason: string; later?: true | "pending" };
