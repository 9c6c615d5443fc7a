import { encodeFunctionData, type Hex, hashDomain, keccak256, numberToHex, toFunctionSelector, toHex } from "viem";
import { bytesTokenAbi, TRANSFER_WITH_AUTHORIZATION_TYPEHASH, tokenAbi } from "./abi.ts";
import { splitSignature } from "./signature.ts";

/** What a payer signs (EIP-3009). `value` in minor units; `validBefore` in Unix seconds; `validAfter` is always 0. */
export type Authorization = {
  token: Hex;
  from: Hex;
  to: Hex;
  value: bigint;
  validBefore: number;
  nonce: Hex;
};

/** EIP-712 domain of a token, as its networks file entry gives it. */
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

/**
 * The nonce that binds an authorization to one payment (or one settlement): who pays the same payment twice on a token
 * signs the same nonce twice, and the token refuses the second one.
 * @param parts for example `["payment", "pay_…"]`; none may hold a line feed
 */
export function deriveNonce(deployment: string, parts: readonly string[]): Hex {
  return keccak256(toHex([deployment, ...parts].join("\n")));
}

/** EIP-712 domain separator. */
export function domainSeparator(domain: TokenDomain): Hex {
  return hashDomain({ domain: { ...domain, chainId: BigInt(domain.chainId) }, types: { EIP712Domain: domainType } });
}

/**
 * The EIP-712 digest that the payer's key signs. Packed by hand: every member is one word, and this runs for each
 * authorization that is looked at.
 */
export function hashAuthorization(separator: Hex, authorization: Authorization): Hex {
  const struct = keccak256(
    Buffer.from(TRANSFER_WITH_AUTHORIZATION_TYPEHASH.slice(2) + packMembers(authorization), "hex"),
  );
  return keccak256(Buffer.from(`1901${separator.slice(2)}${struct.slice(2)}`, "hex"));
}

/** The six members in the order of EIP-3009, a word each, as hex without 0x. */
function packMembers({ from, to, value, validBefore, nonce }: Authorization): string {
  return (
    packAddress(from) + packAddress(to) + packNumber(value) + packNumber(0n) + packNumber(validBefore) + nonce.slice(2)
  );
}

const packAddress = (address: Hex) => address.slice(2).toLowerCase().padStart(64, "0");
const packNumber = (number: bigint | number) => number.toString(16).padStart(64, "0");

/**
 * The typed data as wallets take it: a JSON text with EIP712Domain listed and amounts as 0x hex, so that no wallet's
 * JSON parser can round one. The chain id is a plain number: a wallet on viem that strips EIP712Domain leaves a chain
 * id given as text out of the domain, and signs for no chain at all (docs/decisions/typed-data.md).
 */
export function typedDataJson(domain: TokenDomain, authorization: Authorization): string {
  return JSON.stringify({
    types: { EIP712Domain: domainType, TransferWithAuthorization: authorizationType },
    primaryType: "TransferWithAuthorization",
    domain,
    message: {
      from: authorization.from,
      to: authorization.to,
      value: numberToHex(authorization.value),
      validAfter: numberToHex(0),
      validBefore: numberToHex(authorization.validBefore),
      nonce: authorization.nonce,
    },
  });
}

/** `transferWithAuthorization` with v, r and s. */
const SELECTOR = toFunctionSelector(tokenAbi[0]);

/** Call data of `transferWithAuthorization` with v, r and s; the signature is a key's, in 65 bytes. */
export function encodeTransfer(authorization: Authorization, signature: Hex): Hex {
  const { r, s, v } = splitSignature(signature);
  return `${SELECTOR}${packMembers(authorization)}${packNumber(v)}${r.slice(2)}${s.slice(2)}`;
}

/** Call data of the other overload, for a signature that a smart wallet judges (ERC-1271). */
export function encodeBytesTransfer({ from, to, value, validBefore, nonce }: Authorization, signature: Hex): Hex {
  const args = [from, to, value, 0n, BigInt(validBefore), nonce, signature] as const;
  return encodeFunctionData({ abi: bytesTokenAbi, functionName: "transferWithAuthorization", args });
}
