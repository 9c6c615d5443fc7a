import type { Hex } from "viem";
import type { EvmKind } from "../db/chain-families.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/** Dependencies of a verification. */
export type VerifyDeps = Pick<TransferDeps, "db" | "chains" | "screeningList" | "metrics" | "now">;

/** The members of a transfer or an option from which its authorization is built. `valid_before` is in Unix seconds. */
export type EvmAuthorization = {
  kind: EvmKind;
  asset: string;
  token: Hex;
  payer: Hex;
  receiver: Hex;
  amount: bigint;
  valid_before: number;
  authorization_nonce: Hex;
};

/** The members of a transfer or an option from which its transaction on Solana is built. */
export type SolanaAuthorization = {
  kind: "spl";
  asset: string;
  token: string;
  payer: string;
  receiver: string;
  amount: bigint;
  authorization_nonce: Hex;
};

/**
 * What a wallet returned on an EVM chain: `proof` is the signature, and for a push the hash of the transaction. `permit` is
 * the EIP-2612 signature for Permit2, if any. A push in a block after `moveBy` pays nothing.
 */
export type EvmSigned = EvmAuthorization & { chain: string; proof: Hex; permit: Hex | null; moveBy?: Date };
/** What a wallet returned on Solana: `proof` is the signed transaction in base64. */
export type SolanaSigned = SolanaAuthorization & { chain: string; proof: string };
/** What a wallet returned. `kind` tells the chain families apart. */
export type Signed = EvmSigned | SolanaSigned;

/** Returns what a wallet returned on an EVM chain. Throws for a Solana cluster, which is a bug. */
export function readEvmSigned(signed: Signed): EvmSigned {
  if (signed.kind === "spl") throw new Error(`${signed.asset} is not an asset of an EVM chain`);
  return signed;
}

/** Returns what a wallet returned on Solana. Throws for an EVM chain, which is a bug. */
export function readSolanaSigned(signed: Signed): SolanaSigned {
  if (signed.kind !== "spl") throw new Error(`${signed.asset} is not an asset of a Solana cluster`);
  return signed;
}

/**
 * The result of a verification. `lastValidHeight` is the last block height at which a Solana transaction can be included.
 * `codeHash` is the hash of a contract wallet's code. `deployed` means that this code is at the payer's address already, so that no factory
 * is called for it. `counted` has the ids of the payer's other transfers whose amounts were
 * subtracted from its balance. `later` means that the transfer cannot be verified yet, for example because our endpoint does
 * not know the transaction; `pending` means that the transaction is known and in no block. `byCode` means that the payer is
 * a contract, which is verified separately from plain keys.
 */
export type VerificationResult =
  | {
      ok: true;
      smartWallet: boolean;
      codeHash?: string | undefined;
      deployed?: boolean;
      lastValidHeight?: number;
      counted?: ReadonlySet<string>;
    }
  | { ok: false; reason: string; later?: true | "pending"; byCode?: true };
