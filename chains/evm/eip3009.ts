import { encodeFunctionData, type Hex, hashDomain, toFunctionSelector } from "viem";
import { keccak256 } from "../keccak256.ts";
import { bytesTokenAbi, TRANSFER_WITH_AUTHORIZATION_TYPEHASH, tokenAbi } from "./abi.ts";
import { packAddress, packNumber } from "./abi-words.ts";
import { splitSignature } from "./signature.ts";

/**
 * A transfer that its payer signs (EIP-3009). `value` is in minor units, `validBefore` in Unix seconds; `validAfter` is
 * 0.
 */
export type Authorization = {
  token: Hex;
  from: Hex;
  to: Hex;
  value: bigint;
  validBefore: number;
  nonce: Hex;
};

/** The EIP-712 domain of a token, from the networks file. */
export type TokenDomain = { name: string; version: string; chainId: number; verifyingContract: Hex };

const domainType = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
] as const;

const authorizationType = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "validAfter", type: "uint256" },
  { name: "validBefore", type: "uint256" },
  { name: "nonce", type: "bytes32" },
] as const;

/** Returns the EIP-712 domain separator. */
export function domainSeparator(domain: TokenDomain): Hex {
  return hashDomain({ domain: { ...domain, chainId: BigInt(domain.chainId) }, types: { EIP712Domain: domainType } });
}

/**
 * Returns the EIP-712 digest that the payer signs. The members are packed by hand for speed: each is one word, and this
 * runs for every authorization that is verified.
 */
export function hashAuthorization(separator: Hex, authorization: Authorization): Hex {
  const struct = keccak256(
    Buffer.from(TRANSFER_WITH_AUTHORIZATION_TYPEHASH.slice(2) + packMembers(authorization), "hex"),
  );
  return keccak256(Buffer.from(`1901${separator.slice(2)}${struct.slice(2)}`, "hex"));
}

/** Returns the six members in the order of EIP-3009, one word each, as hex without 0x. */
function packMembers({ from, to, value, validBefore, nonce }: Authorization): string {
  return (
    packAddress(from) + packAddress(to) + packNumber(value) + packNumber(0n) + packNumber(validBefore) + nonce.slice(2)
  );
}

/**
 * Returns the typed data as JSON for wallets. Amounts are 0x hex, so that no wallet's JSON parser rounds them. The chain
 * id is a number: a wallet on viem that strips EIP712Domain drops a chain id given as a string and then signs for no
 * chain at all (docs/decisions/typed-data.md).
 */
export function typedDataJson(domain: TokenDomain, authorization: Authorization): string {
  const { from, to, value, validBefore, nonce } = authorization;
  const [amount, end] = [value, validBefore].map((number) => `0x${number.toString(16)}`);
  return `${beginTypedData(domain)}{"from":"${from}","to":"${to}","value":"${amount}","validAfter":"0x0","validBefore":"${end}","nonce":"${nonce}"}}`;
}

/** What comes before the message in a token's typed data, which is written once because wallets receive many. */
const beginnings = new WeakMap<TokenDomain, string>();

function beginTypedData(domain: TokenDomain): string {
  const types = { EIP712Domain: domainType, TransferWithAuthorization: authorizationType };
  const head = { types, primaryType: "TransferWithAuthorization", domain };
  const beginning = beginnings.get(domain) ?? `${JSON.stringify(head).slice(0, -1)},"message":`;
  beginnings.set(domain, beginning);
  return beginning;
}

/** The selector of transferWithAuthorization with v, r and s. */
const SELECTOR = toFunctionSelector(tokenAbi[0]);

/** Returns call data of transferWithAuthorization with v, r and s. The signature has 65 bytes. */
export function encodeTransfer(authorization: Authorization, signature: Hex): Hex {
  const { r, s, v } = splitSignature(signature);
  return `${SELECTOR}${packMembers(authorization)}${packNumber(v)}${r.slice(2)}${s.slice(2)}`;
}

const BALANCE_SELECTOR = toFunctionSelector("balanceOf(address)");
const STATE_SELECTOR = toFunctionSelector("authorizationState(address,bytes32)");

/** Returns call data of a token's balanceOf. */
export function encodeBalanceOf(account: Hex): Hex {
  return `${BALANCE_SELECTOR}${packAddress(account)}`;
}

/** Returns call data of authorizationState: whether an authorization was used or cancelled. */
export function encodeAuthorizationState(payer: Hex, nonce: Hex): Hex {
  return `${STATE_SELECTOR}${packAddress(payer)}${nonce.slice(2)}`;
}

/** Returns call data of transferWithAuthorization with a bytes signature, which a smart wallet verifies (ERC-1271). */
export function encodeBytesTransfer({ from, to, value, validBefore, nonce }: Authorization, signature: Hex): Hex {
  const args = [from, to, value, 0n, BigInt(validBefore), nonce, signature] as const;
  return encodeFunctionData({ abi: bytesTokenAbi, functionName: "transferWithAuthorization", args });
}
