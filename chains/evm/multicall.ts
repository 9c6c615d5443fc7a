import { decodeErrorResult, decodeFunctionResult, encodeFunctionData, type Hex, numberToHex, parseAbi } from "viem";
import { cleanText } from "../../ops/clean-text.ts";
import { ChainFault } from "../faults.ts";
import { multicallAbi, multicallReadAbi } from "./abi.ts";
import type { Rpc } from "./rpc.ts";
import { isOutOfGas, throwFault } from "./rpc-errors.ts";

export type Call = { target: Hex; data: Hex };
/** What one call of several came to; `reason` is the contract's own words, cleaned and shortened. */
export type CallOutcome = { ok: true; data: Hex } | { ok: false; reason: string };

/** Solidity's own, and those of Permit2, our two contracts and ERC-6093 that a person should read by name. */
const errorAbi = parseAbi([
  "error Error(string message)",
  "error Panic(uint256 code)",
  "error InvalidSigner()",
  "error InvalidContractSignature()",
  "error InvalidNonce()",
  "error SignatureExpired(uint256 deadline)",
  "error WrongAmount(uint256 received, uint256 signed)",
  "error NonceUsed(bytes32 nonce)",
  "error NotSigned()",
  "error TransferRefused()",
  "error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)",
  "error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed)",
]);

/** Call data that makes all calls in one transaction, each allowed to fail by itself. */
export function encodeMulticall(calls: readonly Call[]): Hex {
  return encodeFunctionData({
    abi: multicallAbi,
    functionName: "aggregate3",
    args: [calls.map(({ target, data }) => ({ target, allowFailure: true, callData: data }))],
  });
}

/**
 * Makes all calls at the newest block in one eth_call. Order of the answer is the order of the calls.
 * Throws ChainFault `rpc_answer` when the whole call was refused.
 */
export async function simulateCalls(
  rpc: Rpc,
  at: { multicall: Hex; from?: Hex; gas?: bigint },
  calls: readonly Call[],
): Promise<CallOutcome[]> {
  if (calls.length === 0) return [];
  const request = {
    to: at.multicall,
    data: encodeMulticall(calls),
    ...(at.from ? { from: at.from } : {}),
    ...(at.gas === undefined ? {} : { gas: numberToHex(at.gas) }),
  };
  const answer = await rpc({ method: "eth_call", params: [request, "latest"] }).catch(throwFault);
  // An address without code answers "0x" to anything.
  if (answer === "0x") throw new ChainFault("wrong_contract", { detail: "the multicall address holds no code" });
  return decodeMulticall(answer);
}

/** Outcomes of the calls that `encodeMulticall` made, in order. */
export function decodeMulticall(answer: Hex): CallOutcome[] {
  const results = decodeFunctionResult({ abi: multicallAbi, functionName: "aggregate3", data: answer });
  return results.map(({ success, returnData }) =>
    success ? { ok: true, data: returnData } : { ok: false, reason: readRevert(returnData) },
  );
}

/** Gas that Multicall3 itself takes around a single member. */
const AROUND_ONE = 60_000;

/** Calls that belong together, in order: the last one is what it is about. `gas` is what all of them may take. */
export type Member = { calls: readonly Call[]; gas: number; alone: boolean };

/** Members asked by themselves at the same time. */
const SIDE_BY_SIDE = 8;

/**
 * The same for members that must not be judged by each other: one that fails among others, or a call that fails as a
 * whole, is asked again by itself, with the gas it may really take. A payer whose wallet is code could otherwise burn
 * what the others need. Gives what the last call of each member came to.
 */
export async function simulateEach(
  rpc: Rpc,
  at: { multicall: Hex; from?: Hex },
  members: readonly Member[],
): Promise<CallOutcome[]> {
  const social = members.filter((member) => !member.alone);
  // One that has no company is asked by itself right away.
  const together = members.length > 1 ? await simulateTogether(rpc, at, social) : new Map<Member, CallOutcome>();
  const failed = members.filter((member) => !together.get(member)?.ok);
  const again = await simulateAlone(rpc, at, failed);
  const none: CallOutcome = { ok: false, reason: "the simulation gave no answer" };
  return members.map((member) => again.get(member) ?? together.get(member) ?? none);
}

/** What each member comes to by itself, with the gas that it may really take; a few at the same time. */
export async function simulateAlone(
  rpc: Rpc,
  at: { multicall: Hex; from?: Hex },
  members: readonly Member[],
): Promise<Map<Member, CallOutcome>> {
  const alone = async ({ calls, gas }: Member): Promise<CallOutcome> => {
    const limit = { ...at, gas: BigInt(gas + AROUND_ONE) };
    const outcomes = await simulateCalls(rpc, limit, calls).catch((error: unknown): CallOutcome[] => {
      if (isOutOfGas(error)) return [{ ok: false, reason: `takes more than ${gas} gas` }];
      throw error;
    });
    return outcomes.at(-1) ?? { ok: false, reason: "the simulation gave no answer" };
  };
  const aloneOrReason = (member: Member) =>
    alone(member).catch(async (error: unknown): Promise<CallOutcome> => {
      if (!(error instanceof ChainFault && error.code === "rpc_answer")) throw error;
      await requireAnswer(rpc, at.multicall);
      return { ok: false, reason: error.message };
    });
  const outcomes = new Map<Member, CallOutcome>();
  for (let from = 0; from < members.length; from += SIDE_BY_SIDE) {
    const some = members.slice(from, from + SIDE_BY_SIDE);
    const answers = await Promise.all(some.map(aloneOrReason));
    for (const [index, member] of some.entries()) outcomes.set(member, answers[index] as CallOutcome);
  }
  return outcomes;
}

/**
 * An endpoint that answers anything else has refused a call; one that does not says nothing about it. Throws what the
 * endpoint throws.
 */
export async function requireAnswer(rpc: Rpc, multicall: Hex): Promise<void> {
  await simulateCalls(rpc, { multicall }, [askNumber(multicall)]);
}

/** A call that nobody's code takes part in. */
const askNumber = (multicall: Hex): Call => ({
  target: multicall,
  data: encodeFunctionData({ abi: multicallReadAbi, functionName: "getBlockNumber" }),
});

/** What each came to among the others; nothing when they could not be asked together. */
export async function simulateTogether<M extends Pick<Member, "calls">>(
  rpc: Rpc,
  at: { multicall: Hex; from?: Hex },
  members: readonly M[],
): Promise<Map<M, CallOutcome>> {
  const calls = members.flatMap((member) => member.calls);
  const results = await simulateCalls(rpc, at, calls).catch((error: unknown): CallOutcome[] => {
    if (error instanceof ChainFault && error.code === "rpc_answer") return [];
    throw error;
  });
  const outcomes = new Map<M, CallOutcome>();
  let end = 0;
  for (const member of members) {
    end += member.calls.length;
    const outcome = results[end - 1];
    if (outcome) outcomes.set(member, outcome);
  }
  return outcomes;
}

/** Longest reason of a contract that is kept, code points. */
const LONGEST_REASON = 200;

/** The reason a contract gave for reverting. */
export function readRevert(data: Hex): string {
  try {
    const { errorName, args } = decodeErrorResult({ abi: errorAbi, data });
    return cleanText(errorName === "Error" ? String(args[0]) : [errorName, ...(args ?? [])].join(" "), LONGEST_REASON);
  } catch {
    return data === "0x" ? "reverted without a reason" : `reverted with ${data.slice(0, 10)}`;
  }
}
