import type { Hex } from "viem";
import type { AuthorizationRow } from "./authorization.ts";

/**
 * What a buyer's wallet handed over for a row. `proof` is its signature, for a push the hash of its transaction, on Solana
 * its signed transaction in base64; `permit` the EIP-2612 signature that came before it, if one did.
 */
export type Signed = AuthorizationRow & { chain: string; proof: string; permit: Hex | null };

/**
 * `validBefore` is the last block height at which a Solana transaction can land. `codeHash` is what a contract wallet's code
 * hashes to. `counted` are the payer's other transfers whose amounts were taken off its balance. `later`: it cannot be
 * verified yet, for example because a transaction is not known to our endpoint so far; `pending`: it is known and in no
 * block. `byCode`: the payer is code, which is asked apart from plain keys.
 */
export type Verdict =
  | {
      ok: true;
      smartWallet: boolean;
      codeHash?: string | undefined;
      validBefore?: number;
      counted?: ReadonlySet<string>;
    }
  | { ok: false; reason: string; later?: true | "pending"; byCode?: true };
