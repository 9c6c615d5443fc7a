import { isHexText } from "../runtime/hex.ts";
import type { Kind } from "./tables.ts";

type Hex = `0x${string}`;

/** The columns of a transfer or a quote whose form or meaning depends on the chain family. */
type FamilyColumns = { kind: Kind; token: string; payer: string; receiver: string; valid_before: number | null };

/** Kinds of token movements on EVM chains. */
export type EvmKind = Exclude<Kind, "spl">;
/** On EVM chains: addresses in lower case. An authorization is valid until `valid_before`, Unix seconds. */
type EvmColumns = { kind: EvmKind; token: Hex; payer: Hex; receiver: Hex; valid_before: number };
/** On Solana: addresses in base58. A blockhash or a durable nonce limits the validity of a transaction, not a time. */
type SolanaColumns = { kind: "spl"; valid_before: null };

/** A row of an EVM chain. */
export type EvmRow<R extends FamilyColumns> = R & EvmColumns;
/** A row of a Solana cluster. */
export type SolanaRow<R extends FamilyColumns> = R & SolanaColumns;
/** A row of either chain family. `kind` tells them apart. */
type FamilyRow<R extends FamilyColumns> = EvmRow<R> | SolanaRow<R>;

/** Returns a stored row with the types of its chain family. Throws when the row does not fit its kind, which is a bug. */
export function readFamilyRow<R extends FamilyColumns>(row: R): FamilyRow<R> {
  if (isEvmRow(row) || isSolanaRow(row)) return row;
  throw misfit(row);
}

/** Returns a stored row of an EVM chain. Throws for any other row, which is a bug. */
export function readEvmRow<R extends FamilyColumns>(row: R): EvmRow<R> {
  if (isEvmRow(row)) return row;
  throw misfit(row);
}

/** Returns a stored row of a Solana cluster. Throws for any other row, which is a bug. */
export function readSolanaRow<R extends FamilyColumns>(row: R): SolanaRow<R> {
  if (isSolanaRow(row)) return row;
  throw misfit(row);
}

function isEvmRow<R extends FamilyColumns>(row: R): row is EvmRow<R> {
  const { kind, token, payer, receiver, valid_before } = row;
  return kind !== "spl" && valid_before !== null && [token, payer, receiver].every(isHexText);
}

function isSolanaRow<R extends FamilyColumns>(row: R): row is SolanaRow<R> {
  return row.kind === "spl" && row.valid_before === null;
}

function misfit({ kind, token, payer, receiver }: FamilyColumns): Error {
  return new Error(
    `a row of kind ${kind} does not fit its chain: token ${token}, payer ${payer}, receiver ${receiver}`,
  );
}
