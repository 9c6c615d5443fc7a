import { concat, decodeAbiParameters, type Hex, hexToNumber, numberToHex, pad, size, slice } from "viem";
import { parseAnswer } from "../errors.ts";
import type { Rpc } from "./evm-rpc.ts";
import { lowerCaseHex } from "./hex.ts";
import type { Call } from "./multicall.ts";
import { throwChainError } from "./rpc-errors.ts";

/** The kind of an account: a plain key, a key that delegates to code (EIP-7702), or a contract. */
export type AccountKind = "key" | "delegated" | "contract";

/**
 * Returns init code that is called and never deployed. It reads the addresses appended to it, 32 bytes each, and returns
 * one word about the code at each address, so that one eth_call inspects many accounts.
 * @param opcode EXTCODESIZE or EXTCODEHASH
 */
const readCodeProgram = (opcode: "3b" | "3f"): Hex =>
  concat([
    "0x6024803803809160003960005b", // n = codesize - 0x24; codecopy(0, 0x24, n); for (i = 0;
    "0x81811015601f57", //             i < n;
    `0x8051${opcode}8152602001600c56`, // i += 32) mstore(i, opcode(mload(i)))
    "0x5b506000f3", //                return(0, n)
  ]);
const CODE_SIZES = readCodeProgram("3b");
const CODE_HASHES = readCodeProgram("3f");
/** Maximum number of accounts per call. The call returns at most the maximum size of a contract (EIP-170). */
const MAX_ACCOUNTS = 700;
/**
 * The account that is read first, because it has no code. The EVM refuses an answer whose first byte is 0xEF (EIP-3541),
 * and a stranger can choose code whose hash begins with it.
 */
const NO_CODE: Hex = "0x00";
/** Size of an EIP-7702 delegation: 0xef0100 and an address. */
const DELEGATION_BYTES = 23;

/** Returns the kind of each account, in order. */
export async function readAccountKinds(rpc: Rpc, accounts: readonly Hex[]): Promise<AccountKind[]> {
  const words = await readCodeWords(rpc, CODE_SIZES, accounts);
  return parseAnswer(() => words.map((word) => toAccountKind(hexToNumber(word))));
}

/** Returns the hash of the code at each address (EXTCODEHASH), in order. A minimal proxy's code contains its target. */
export function readCodeHashes(rpc: Rpc, accounts: readonly Hex[]): Promise<Hex[]> {
  return readCodeWords(rpc, CODE_HASHES, accounts);
}

async function readCodeWords(rpc: Rpc, program: Hex, accounts: readonly Hex[]): Promise<Hex[]> {
  const words: Hex[] = [];
  for (let from = 0; from < accounts.length; from += MAX_ACCOUNTS) {
    const some = accounts.slice(from, from + MAX_ACCOUNTS);
    const data = concat([program, ...[NO_CODE, ...some].map((account) => pad(account))]);
    const answer = await rpc({ method: "eth_call", params: [{ data }, "latest"] }).catch(throwChainError);
    words.push(...parseAnswer(() => some.map((_account, index) => slice(answer, index * 32 + 32, index * 32 + 64))));
  }
  return words;
}

/**
 * Returns init code that is called and never deployed. It makes the call whose data is appended to it, and returns the size of the code
 * at an address afterwards.
 */
const deployProgram = (target: Hex, account: Hex): Hex =>
  concat([
    "0x6049803803809160003960006000916000600073", // n = codesize - 0x49; codecopy(0, 0x49, n)
    target,
    "0x5af15073", //                                 call(gas, target, 0, 0, n, 0, 0)
    account,
    "0x3b60005260206000f3", //                       mstore(0, extcodesize(account)); return(0, 32)
  ]);

/**
 * Returns true if a deployment (ERC-6492) puts code at an account's address. Throws ChainError `rpc_answer` if the endpoint refuses the
 * call.
 * @param deployment `gas` is the limit of the call, which runs code that a stranger may have chosen
 */
export async function putsCodeAt(rpc: Rpc, account: Hex, deployment: Call & { gas: bigint }): Promise<boolean> {
  const { target, data, gas } = deployment;
  const request = { data: concat([deployProgram(target, account), data]), gas: numberToHex(gas) };
  const answer = await rpc({ method: "eth_call", params: [request, "latest"] }).catch(throwChainError);
  return parseAnswer(() => hexToNumber(answer)) > 0;
}

/** Returns the kind of an account by the size of the code at its address. */
export function toAccountKind(codeSize: number): AccountKind {
  if (codeSize === 0) return "key";
  return codeSize === DELEGATION_BYTES ? "delegated" : "contract";
}

/** ERC-6492: the suffix of a signature by a wallet that may not be deployed yet. */
const MAGIC: Hex = `0x${"6492".repeat(16)}`;

/** A smart wallet's signature, and the call that deploys the wallet if the signature contains one. */
export type WalletSignature = { signature: Hex; deployment: Call | undefined };

/** Unwraps an ERC-6492 signature. Returns any other signature unchanged, without a deployment. */
export function unwrapSignature(signature: Hex): WalletSignature {
  if (size(signature) < 32 || slice(signature, -32) !== MAGIC) return { signature, deployment: undefined };
  try {
    const [target, data, inner] = decodeAbiParameters(
      [{ type: "address" }, { type: "bytes" }, { type: "bytes" }],
      slice(signature, 0, -32),
    );
    return { signature: inner, deployment: { target: lowerCaseHex(target), data } };
  } catch {
    return { signature, deployment: undefined };
  }
}
