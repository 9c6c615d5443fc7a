import { concat, decodeAbiParameters, type Hex, hexToNumber, pad, size, slice } from "viem";
import type { Call } from "./multicall.ts";
import type { Rpc } from "./rpc.ts";
import { throwFault } from "./rpc-errors.ts";

/** What stands at an address: a key alone, a key that has delegated to code (EIP-7702), or a contract. */
export type AccountKind = "key" | "delegated" | "contract";

/**
 * Init code that is never deployed: it reads addresses, 32 bytes each, from behind itself and gives back a word about the
 * code at each, so that one eth_call tells of any number of accounts.
 * @param ask the instruction that is asked of each address: EXTCODESIZE or EXTCODEHASH
 */
const askOfCode = (ask: "3b" | "3f"): Hex =>
  concat([
    "0x6024803803809160003960005b", // n = codesize - 0x24; codecopy(0, 0x24, n); for (i = 0;
    "0x81811015601f57", //             i < n;
    `0x8051${ask}8152602001600c56`, //   i += 32) mstore(i, ask(mload(i)))
    "0x5b506000f3", //                return(0, n)
  ]);
const CODE_SIZES = askOfCode("3b");
const CODE_HASHES = askOfCode("3f");
/** What an EVM lets such a call return is the size of a contract at most (EIP-170). */
const MOST_ACCOUNTS = 700;
/**
 * The account that is read first, because it has no code. The EVM refuses an answer whose first byte is 0xEF (EIP-3541),
 * and a stranger can choose code whose hash begins with it.
 */
const NO_CODE: Hex = "0x00";
/** EIP-7702: 0xef0100 and an address. */
const DELEGATION_BYTES = 23;

/** What stands at each address, in the order asked. */
export async function readAccountKinds(rpc: Rpc, accounts: readonly Hex[]): Promise<AccountKind[]> {
  return (await readWords(rpc, CODE_SIZES, accounts)).map((word) => toKind(hexToNumber(word)));
}

/** What the code at each address hashes to (EXTCODEHASH), in the order asked; a proxy's names what it forwards to. */
export function readCodeHashes(rpc: Rpc, accounts: readonly Hex[]): Promise<Hex[]> {
  return readWords(rpc, CODE_HASHES, accounts);
}

async function readWords(rpc: Rpc, program: Hex, accounts: readonly Hex[]): Promise<Hex[]> {
  const words: Hex[] = [];
  for (let from = 0; from < accounts.length; from += MOST_ACCOUNTS) {
    const some = accounts.slice(from, from + MOST_ACCOUNTS);
    const data = concat([program, ...[NO_CODE, ...some].map((account) => pad(account))]);
    const answer = await rpc({ method: "eth_call", params: [{ data }, "latest"] }).catch(throwFault);
    words.push(...some.map((_account, index) => slice(answer, index * 32 + 32, index * 32 + 64)));
  }
  return words;
}

function toKind(codeSize: number): AccountKind {
  if (codeSize === 0) return "key";
  return codeSize === DELEGATION_BYTES ? "delegated" : "contract";
}

/** ERC-6492: what ends the signature of a wallet that may not be deployed yet. */
const MAGIC: Hex = `0x${"6492".repeat(16)}`;

/** A smart wallet's signature, and the call that deploys the wallet where the signature brings one. */
export type WalletSignature = { signature: Hex; deployment: Call | undefined };

/** Takes a signature apart as ERC-6492 says; one of another form is the wallet's own. */
export function unwrapSignature(signature: Hex): WalletSignature {
  if (size(signature) < 32 || slice(signature, -32) !== MAGIC) return { signature, deployment: undefined };
  try {
    const [target, data, inner] = decodeAbiParameters(
      [{ type: "address" }, { type: "bytes" }, { type: "bytes" }],
      slice(signature, 0, -32),
    );
    return { signature: inner, deployment: { target: target.toLowerCase() as Hex, data } };
  } catch {
    return { signature, deployment: undefined };
  }
}
