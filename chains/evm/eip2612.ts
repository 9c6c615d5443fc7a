import { type Hex, numberToHex } from "viem";
import type { TokenDomain } from "./eip3009.ts";

/** An allowance that its owner signs (EIP-2612). `value` is in minor units, `deadline` in Unix seconds. */
export type Permit = { owner: Hex; spender: Hex; value: bigint; nonce: bigint; deadline: number };

const types = {
  Permit: [
    { name: "owner", type: "address" },
    { name: "spender", type: "address" },
    { name: "value", type: "uint256" },
    { name: "nonce", type: "uint256" },
    { name: "deadline", type: "uint256" },
  ],
} as const;

/** Returns the typed data of a permit as JSON for wallets; see `typedDataJson`. */
export function permitJson(domain: TokenDomain, permit: Permit): string {
  return JSON.stringify({
    types: {
      EIP712Domain: [
        { name: "name", type: "string" },
        { name: "version", type: "string" },
        { name: "chainId", type: "uint256" },
        { name: "verifyingContract", type: "address" },
      ],
      ...types,
    },
    primaryType: "Permit",
    domain,
    message: {
      owner: permit.owner,
      spender: permit.spender,
      value: numberToHex(permit.value),
      nonce: numberToHex(permit.nonce),
      deadline: numberToHex(permit.deadline),
    },
  });
}
