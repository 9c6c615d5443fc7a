import type { Hex } from "viem";
import type { OptionRow } from "../db/queries/payment-options.ts";
import type { Allowance, Mode } from "../db/tables.ts";
import type { TransferDeps } from "./transfer-deps.ts";
import type { Signed, VerificationResult } from "./verification.ts";

/** An action that a wallet executes (specification, 2.9). `chain` is CAIP-2. */
export type WalletAction = { chain: string; method: string; params: readonly unknown[] };

/** The texts that a wallet has returned: the proof of payment, and the EIP-2612 signature for Permit2, if there is one. */
export type WalletProofs = { proof: string; permit: Hex | null };

/** Checks the form of a wallet's result for one action. Returns the error, or undefined. */
export type ResultCheck = (result: unknown) => string | undefined;

/** A wallet of test mode, whose key is derived from a seed. `sign` returns undefined for actions that it cannot execute. */
export type TestWallet = {
  address: string;
  sign(actions: readonly WalletAction[]): Promise<string[] | undefined>;
};

/** The part of a transfer that comes from the payer's wallet. Members that a family does not use are left out. */
type SignedMembers = {
  signature: Buffer;
  permit?: Buffer | null;
  last_valid_height?: number;
  smart_wallet?: boolean;
  code_hash?: string | null;
};

/** How a chain family reads what wallets return. Needs no open chain, because a chain can have left the networks file. */
export type ResultReader = {
  /** Returns one check for the result of each of an option's actions. */
  listChecks(option: Pick<OptionRow, "kind" | "allowance">): readonly ResultCheck[];
  /** Returns true when a transfer that a third party has submitted can still be relayed with the buyer's signature. */
  canStillRelay(kind: OptionRow["kind"]): boolean;
  /** Returns an option with what the wallet returned for it, to be verified. */
  readSigned(option: OptionRow, proofs: WalletProofs): Signed;
  /** Returns what a transfer stores of a verified confirm. */
  toSignedMembers(proofs: WalletProofs, verified: Extract<VerificationResult, { ok: true }> | undefined): SignedMembers;
};

/** What a chain family asks of buyers' wallets, for one chain. */
export type WalletDriver = {
  /**
   * Returns `valid_before` of an option (Unix seconds) whose payment may still be relayed at `lastRelay`; null where no time
   * limits what the wallet signs.
   */
  validBefore(lastRelay: Date): number | null;
  /** Returns until when an option that is issued now is valid; null for one that is valid as long as its quote. */
  optionEnd(now: Date): Date | null;
  /**
   * Returns, in the given order, the allowance that each account has to grant before it can pay an amount (minor units) of
   * an asset: null when it needs none, undefined when it cannot pay. Throws ChainError.
   */
  readAllowances(
    wanted: readonly { asset: string; payer: string; amount: bigint }[],
  ): Promise<(Allowance | null | undefined)[]>;
  /** Returns what a wallet executes for an option, in order; undefined where it is built when the wallet asks for it. */
  listActions(option: OptionRow): readonly WalletAction[] | undefined;
  /** Builds what a wallet executes for an option, in order. Throws ChainError. */
  buildActions(
    deps: Pick<TransferDeps, "db" | "now">,
    args: { option: OptionRow; mode: Mode },
  ): Promise<readonly WalletAction[]>;
  /** Opens the wallet of test mode; undefined where there is none. */
  openTestWallet(seed: string): TestWallet | undefined;
};
