import { decodeFunctionResult, encodeFunctionData, type Hex, parseAbi } from "viem";
import { ChainError } from "../errors.ts";
import type { Call, CallOutcome } from "./multicall.ts";

/** The on-chain sanctions oracle, with the interface of Chainalysis' oracle. */
const oracleAbi = parseAbi(["function isSanctioned(address account) view returns (bool)"]);

/** Gas limit of one oracle call. */
export const ORACLE_GAS = 60_000;

/** Returns the call that checks an account. */
export function oracleCall(oracle: Hex, account: Hex): Call {
  return {
    target: oracle,
    data: encodeFunctionData({ abi: oracleAbi, functionName: "isSanctioned", args: [account] }),
  };
}

/**
 * Returns true if the oracle lists the account. Throws ChainError `screening_down` for anything but a boolean, so that no
 * account passes while the oracle fails.
 */
export function decodeOracleResult(outcome: CallOutcome | undefined): boolean {
  if (outcome?.ok && /^0x0{63}[01]$/.test(outcome.data))
    return decodeFunctionResult({ abi: oracleAbi, functionName: "isSanctioned", data: outcome.data });
  throw new ChainError("screening_down", { detail: "the sanctions oracle returned no boolean" });
}
