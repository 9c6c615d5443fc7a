import { decodeFunctionResult, encodeFunctionData, type Hex, parseAbi } from "viem";
import { ChainFault } from "../faults.ts";
import type { Call, CallOutcome } from "./multicall.ts";

/** The on-chain sanctions oracle, in the form that Chainalysis' has. */
const oracleAbi = parseAbi(["function isSanctioned(address account) view returns (bool)"]);

/** Gas that asking the oracle about one account may take. */
export const ORACLE_GAS = 60_000;

/** The call that asks about an account. */
export function askOracle(oracle: Hex, account: Hex): Call {
  return {
    target: oracle,
    data: encodeFunctionData({ abi: oracleAbi, functionName: "isSanctioned", args: [account] }),
  };
}

/** What it answered. Throws ChainFault `screening_down` for anything but yes or no: nobody passes an oracle that fails. */
export function readOracle(outcome: CallOutcome | undefined): boolean {
  if (outcome?.ok && /^0x0{63}[01]$/.test(outcome.data))
    return decodeFunctionResult({ abi: oracleAbi, functionName: "isSanctioned", data: outcome.data });
  throw new ChainFault("screening_down", { detail: "the sanctions oracle gives no answer" });
}
