import {
  decodeErrorResult,
  encodeFunctionData,
  type Hex,
  isHex,
  numberToHex,
  parseAbi,
  toFunctionSelector,
} from "viem";
import { cleanText } from "../../runtime/clean-text.ts";
import { ChainError, isUnreadable, parseAnswer } from "../errors.ts";
import { multicallReadAbi } from "./abi.ts";
import { packAddress, packBytes, packNumber, readBytes, readNumber } from "./abi-words.ts";
import type { Rpc } from "./evm-rpc.ts";
import { isOutOfGas, throwChainError } from "./rpc-errors.ts";

export type Call = { target: Hex; data: Hex };
/** The outcome of one call. `reason` is the contract's revert reason, cleaned and shortened. */
export type CallOutcome = { ok: true; data: Hex } | { ok: false; reason: string };

/** The errors of Solidity, Permit2, our two contracts and ERC-6093 that are decoded to their names. */
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

const TRY_AGGREGATE = toFunctionSelector("tryAggregate(bool,(address,bytes)[])");

/** Returns call data that makes all calls in one transaction. Each call may fail without failing the others. */
export function encodeMulticall(calls: readonly Call[]): Hex {
  const members = calls.map(({ target, data }) => packAddress(target) + packNumber(0x40) + packBytes(data));
  let offset = calls.length * 32;
  const offsets = members.map((member) => {
    const at = offset;
    offset += member.length / 2;
    return packNumber(at);
  });
  const head = packNumber(0) + packNumber(0x40) + packNumber(calls.length);
  return `${TRY_AGGREGATE}${head}${offsets.join("")}${members.join("")}`;
}

/**
 * Simulates all calls at the newest block in one eth_call and returns their outcomes in order. Throws ChainError
 * `rpc_answer` if the endpoint refuses the whole call.
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
  const answer = await rpc({ method: "eth_call", params: [request, "latest"] }).catch(throwChainError);
  // A call to an address without code returns "0x".
  if (answer === "0x") throw new ChainError("wrong_contract", { detail: "the multicall address has no code" });
  return parseAnswer(() => decodeMulticall(answer));
}

/** Returns the outcomes of the calls of `encodeMulticall`, in order. Throws for an answer that is not their results. */
export function decodeMulticall(answer: Hex): CallOutcome[] {
  if (!isHex(answer)) throw new RangeError("the answer is not hex");
  const list = readNumber(answer, 0);
  const first = list + 32;
  const outcomes: CallOutcome[] = [];
  let length = 0;
  // An answer that names more results than it has ends in an error, not in a long loop.
  for (let left = readNumber(answer, list); left > 0; left -= 1) {
    const result = first + readNumber(answer, first + outcomes.length * 32);
    const data = readBytes(answer, result + readNumber(answer, result + 32));
    // Results that share their bytes would take as long to decode as all of them together.
    length += data.length;
    if (length > answer.length) throw new RangeError("the results of a multicall overlap");
    outcomes.push(readNumber(answer, result) === 1 ? { ok: true, data } : { ok: false, reason: readRevert(data) });
  }
  return outcomes;
}

/** Gas that Multicall3 itself uses around a single member. */
const MULTICALL_OVERHEAD_GAS = 60_000;

/**
 * Calls that run in order. The outcome of the last one is the member's outcome. `gas` is the limit for all of them.
 * A member that is `alone` is never simulated with others.
 */
export type BatchMember = { calls: readonly Call[]; gas: number; alone: boolean };

/**
 * The outcome of a member. With `among`, it is the member's outcome without the others: among them it failed, or its outcome is unknown
 * because the endpoint refused the common call or answered that all members fail.
 */
export type MemberOutcome = CallOutcome & { among?: "failed" | "unknown" };

/** How many members `simulateSeparately` simulates at the same time. */
const CONCURRENCY = 8;

/**
 * Simulates members so that they do not affect each other's outcome: in one call first, and then as `retryFailedAlone`
 * does. Returns outcomes in the order of `members`.
 */
export async function simulateIsolated(
  rpc: Rpc,
  at: { multicall: Hex; from?: Hex },
  members: readonly BatchMember[],
): Promise<MemberOutcome[]> {
  const batchable = members.filter((member) => !member.alone);
  // A single member needs no batch.
  const batched = members.length > 1 ? await simulateBatch(rpc, at, batchable) : new Map<BatchMember, CallOutcome>();
  const outcomes = members.map((member) => batched.get(member));
  return retryFailedAlone(rpc, at, members, outcomes);
}

/**
 * Simulates each member that failed among others, or has no outcome, again alone with its own gas limit. Otherwise a payer
 * whose wallet is a contract could burn the gas that the others need. Returns outcomes in the order of `members`.
 * @param outcomes the members' outcomes among each other
 */
export async function retryFailedAlone(
  rpc: Rpc,
  at: { multicall: Hex; from?: Hex },
  members: readonly BatchMember[],
  outcomes: readonly (CallOutcome | undefined)[],
): Promise<MemberOutcome[]> {
  const failed = members.filter((_member, index) => !outcomes[index]?.ok);
  // The first member that passes alone would also pass among the others, because those before it have changed nothing.
  const isAnswered = failed.length < members.length;
  const retried = await simulateSeparately(rpc, at, failed);
  return members.map((member, index): MemberOutcome => {
    const alone = retried.get(member);
    return alone
      ? { ...alone, among: isAnswered && outcomes[index] ? "failed" : "unknown" }
      : (outcomes[index] ?? NO_RESULT);
  });
}

const NO_RESULT: CallOutcome = { ok: false, reason: "the simulation returned no result" };

/** Simulates each member in a call of its own with its own gas limit, a few at the same time. */
export async function simulateSeparately(
  rpc: Rpc,
  at: { multicall: Hex; from?: Hex },
  members: readonly BatchMember[],
): Promise<Map<BatchMember, CallOutcome>> {
  const simulate = async ({ calls, gas }: BatchMember): Promise<CallOutcome> => {
    const limit = { ...at, gas: BigInt(gas + MULTICALL_OVERHEAD_GAS) };
    const outcomes = await simulateCalls(rpc, limit, calls).catch((error: unknown): CallOutcome[] => {
      if (isOutOfGas(error)) return [{ ok: false, reason: `takes more than ${gas} gas` }];
      throw error;
    });
    return outcomes.at(-1) ?? NO_RESULT;
  };
  const simulateOrFail = (member: BatchMember) =>
    simulate(member).catch(async (error: unknown): Promise<CallOutcome> => {
      if (!(error instanceof ChainError && error.code === "rpc_answer") || isUnreadable(error)) throw error;
      await requireResponsive(rpc, at.multicall);
      return { ok: false, reason: error.message };
    });
  const outcomes = new Map<BatchMember, CallOutcome>();
  for (let from = 0; from < members.length; from += CONCURRENCY) {
    const chunk = members.slice(from, from + CONCURRENCY);
    const results = await Promise.all(chunk.map(async (member) => [member, await simulateOrFail(member)] as const));
    for (const [member, outcome] of results) outcomes.set(member, outcome);
  }
  return outcomes;
}

/**
 * Makes a harmless call after the endpoint refused another one. If it succeeds, the refusal was about the other call. If
 * it fails, the endpoint is at fault and the function throws the endpoint's error.
 */
export async function requireResponsive(rpc: Rpc, multicall: Hex): Promise<void> {
  await simulateCalls(rpc, { multicall }, [getBlockNumber(multicall)]);
}

/** A call that runs no code but Multicall3's. */
const getBlockNumber = (multicall: Hex): Call => ({
  target: multicall,
  data: encodeFunctionData({ abi: multicallReadAbi, functionName: "getBlockNumber" }),
});

/** Simulates all members in one call. Returns an empty map if the endpoint refuses that call. */
export async function simulateBatch<M extends Pick<BatchMember, "calls">>(
  rpc: Rpc,
  at: { multicall: Hex; from?: Hex },
  members: readonly M[],
): Promise<Map<M, CallOutcome>> {
  const calls = members.flatMap((member) => member.calls);
  const results = await simulateCalls(rpc, at, calls).catch((error: unknown): CallOutcome[] => {
    if (error instanceof ChainError && error.code === "rpc_answer") return [];
    throw error;
  });
  return outcomesOfMembers(members, results);
}

/** Returns the outcome of each member, which is that of its last call, from the outcomes of all their calls in order. */
export function outcomesOfMembers<M extends Pick<BatchMember, "calls">>(
  members: readonly M[],
  results: readonly CallOutcome[],
): Map<M, CallOutcome> {
  const outcomes = new Map<M, CallOutcome>();
  let end = 0;
  for (const member of members) {
    end += member.calls.length;
    const outcome = results[end - 1];
    if (outcome) outcomes.set(member, outcome);
  }
  return outcomes;
}

/** Maximum length of a revert reason, in code points. */
const MAX_REASON_LENGTH = 200;

/** Returns the reason of a revert from its return data. */
export function readRevert(data: Hex): string {
  try {
    const { errorName, args } = decodeErrorResult({ abi: errorAbi, data });
    return cleanText(
      errorName === "Error" ? String(args[0]) : [errorName, ...(args ?? [])].join(" "),
      MAX_REASON_LENGTH,
    );
  } catch {
    return data === "0x" ? "reverted without a reason" : `reverted with ${data.slice(0, 10)}`;
  }
}
