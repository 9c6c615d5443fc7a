import { concat, type Hex } from "viem";
import artifact from "../../contracts/Inspector.json" with { type: "json" };
import { isFresh } from "../cache-age.ts";
import { ChainError } from "../errors.ts";
import { packAddress, packBytes, packNumber, readBytes, readNumber } from "./abi-words.ts";
import { type AccountKind, toAccountKind } from "./account-code.ts";
import type { Rpc } from "./evm-rpc.ts";
import { lowerCaseHex } from "./hex.ts";
import { type Call, type CallOutcome, decodeMulticall, encodeMulticall } from "./multicall.ts";
import { findRevertData, isOutOfGas, throwChainError } from "./rpc-errors.ts";

/** The maximum size of init code with its arguments, bytes (EIP-3860). */
const MAX_INIT_CODE = 49_152;

/** How long the endpoints of a chain are not asked again after one has refused the call, milliseconds. */
const REFUSED_MS = 5 * 60_000;
const refusedAt = new WeakMap<Rpc, number>();

/** `outcomes` are undefined if an account has code, or if the calls could not be made in this way. */
export type Inspection = { kinds: AccountKind[]; outcomes: CallOutcome[] | undefined };

/**
 * Reads the kinds of accounts and, only if all are plain keys, simulates calls through Multicall3 as `simulateCalls` does: all
 * at the newest block, in one eth_call (contracts/Inspector.sol). Returns undefined if the calls are too large for that, or if
 * an endpoint refuses it or has done so within five minutes. Throws ChainError if no endpoint answers.
 */
export async function inspectAndSimulate(
  rpc: Rpc,
  at: { multicall: Hex; from: Hex },
  { accounts, calls }: { accounts: readonly Hex[]; calls: readonly Call[] },
): Promise<Inspection | undefined> {
  if (isFresh(refusedAt.get(rpc) ?? Number.NEGATIVE_INFINITY, performance.now(), REFUSED_MS)) return undefined;
  const packed = packZeros(encodeInspection(accounts, at.multicall, encodeMulticall(calls)));
  const data = concat([lowerCaseHex(artifact.bytecode), `0x${packNumber(32)}${packBytes(packed)}`]);
  if (data.length / 2 - 1 > MAX_INIT_CODE) return undefined;
  try {
    const answer = await rpc({ method: "eth_call", params: [{ from: at.from, data }, "latest"] }).catch(
      throwChainError,
    );
    return decodeInspection(unpackWords(answer), accounts.length);
  } catch (error) {
    if (!(error instanceof RangeError || (error instanceof ChainError && error.code === "rpc_answer"))) throw error;
    // An outcome of the calls is no refusal: a payer must not decide how other payments are verified.
    if (findRevertData(error) === undefined && !isOutOfGas(error)) refusedAt.set(rpc, performance.now());
    return undefined;
  }
}

function encodeInspection(accounts: readonly Hex[], target: Hex, data: Hex): string {
  const list = packNumber(accounts.length) + accounts.map(packAddress).join("");
  return packNumber(96) + packAddress(target) + packNumber(96 + list.length / 2) + list + packBytes(data);
}

function decodeInspection(answer: Hex, accounts: number): Inspection {
  const sizes = readNumber(answer, 0);
  if (readNumber(answer, sizes) !== accounts) throw new RangeError("the sizes are not those of the accounts");
  const kinds = Array.from({ length: accounts }, (_, index) =>
    toAccountKind(readNumber(answer, sizes + 32 + index * 32)),
  );
  const isDone = readNumber(answer, 32) === 1;
  const answered = readBytes(answer, readNumber(answer, 64));
  // An endpoint that contradicts itself is not believed: code must not run among other transfers.
  const isPlain = kinds.every((kind) => kind === "key");
  return { kinds, outcomes: isDone && isPlain && answered !== "0x" ? decodeMulticall(answered) : undefined };
}

/** The longest run of bytes that one byte can announce. */
const MAX_RUN = 127;

/** Shortens the zeros of data: a byte below 128 precedes as many bytes, and 128 + n stands for n zeros. */
function packZeros(hex: string): Hex {
  const data = Buffer.from(hex, "hex");
  const packed = Buffer.alloc(data.length * 2);
  let size = 0;
  for (let from = 0; from < data.length; ) {
    const isZero = data[from] === 0;
    let to = from + 1;
    while (to < data.length && to - from < MAX_RUN && (data[to] === 0) === isZero) to += 1;
    packed[size] = to - from + (isZero ? 128 : 0);
    size += 1;
    if (!isZero) size += data.copy(packed, size, from, to);
    from = to;
  }
  return `0x${packed.toString("hex", 0, size)}`;
}

/** Returns the words of which each begins with the number of its significant bytes. Throws RangeError for anything else. */
function unpackWords(packed: unknown): Hex {
  if (typeof packed !== "string") throw new RangeError("the answer is not text");
  const words: string[] = [];
  for (let at = 2; at < packed.length; ) {
    const end = at + 2 + Number.parseInt(packed.slice(at, at + 2), 16) * 2;
    const word = packed.slice(at + 2, end);
    if (word.length > 64 || !(end <= packed.length)) throw new RangeError(`there is no word at ${at}`);
    words.push(word.padStart(64, "0"));
    at = end;
  }
  return `0x${words.join("")}`;
}
