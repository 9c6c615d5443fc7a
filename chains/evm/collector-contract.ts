import {
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  hashTypedData,
  numberToHex,
  parseAbi,
  toEventSelector,
} from "viem";
import artifact from "../../contracts/Collector.json" with { type: "json" };
import { create2Address, deployedCode, encodeDeployment } from "./create2.ts";
import { lowerCaseHex } from "./hex.ts";
import { splitSignature } from "./signature.ts";

/** The ABI of contracts/Collector.sol. */
export const collectorAbi = parseAbi([
  "function collect(address token, address payer, uint256 amount, uint256 nonce, uint256 deadline, bytes signature)",
  "function collectWithPermit(address token, address payer, uint256 amount, uint256 nonce, uint256 deadline, bytes signature, uint256 allowance, uint256 permitDeadline, uint8 v, bytes32 r, bytes32 s)",
  "event Collected(address indexed token, address indexed payer, uint256 indexed nonce, uint256 amount)",
  "error WrongAmount(uint256 received, uint256 signed)",
]);

/** The topic of the Collected event. */
export const COLLECTED_TOPIC = toEventSelector("Collected(address,address,uint256,uint256)");

/**
 * The immutables of a Collector. The same two addresses give the same Collector at the same address on every network.
 */
export type CollectorParts = { permit2: Hex; treasury: Hex };

/** Returns the call to the CREATE2 deployer that deploys a Collector. */
export function encodeCollectorDeployment(parts: CollectorParts): { to: Hex; data: Hex } {
  return encodeDeployment(initCode(parts));
}

/** Returns the address of a treasury's Collector, deployed or not. */
export function collectorAddress(parts: CollectorParts): Hex {
  return create2Address(initCode(parts));
}

/** Returns the code of a deployed Collector. */
export function collectorCode({ permit2, treasury }: CollectorParts): Hex {
  return deployedCode(artifact, { PERMIT2: permit2, TREASURY: treasury });
}

/**
 * The Permit2 message that a payer signs (SignatureTransfer). `amount` is in minor units, `deadline` in Unix seconds.
 */
export type PermitTransfer = { token: Hex; amount: bigint; nonce: Hex; deadline: number };

const types = {
  PermitTransferFrom: [
    { name: "permitted", type: "TokenPermissions" },
    { name: "spender", type: "address" },
    { name: "nonce", type: "uint256" },
    { name: "deadline", type: "uint256" },
  ],
  TokenPermissions: [
    { name: "token", type: "address" },
    { name: "amount", type: "uint256" },
  ],
} as const;

/** Returns the typed data of a Permit2 transfer through a Collector, for signing and for hashing. */
export function permitTransferTypedData(at: { chainId: number; permit2: Hex; collector: Hex }, permit: PermitTransfer) {
  return {
    domain: { name: "Permit2", chainId: at.chainId, verifyingContract: at.permit2 },
    types,
    primaryType: "PermitTransferFrom" as const,
    message: {
      permitted: { token: permit.token, amount: permit.amount },
      spender: at.collector,
      nonce: BigInt(permit.nonce),
      deadline: BigInt(permit.deadline),
    },
  };
}

/**
 * Returns the typed data as JSON for wallets, with amounts as 0x hex. It does not list EIP712Domain: Permit2's domain has
 * no version.
 */
export function permitTransferJson(
  at: { chainId: number; permit2: Hex; collector: Hex },
  permit: PermitTransfer,
): string {
  const data = permitTransferTypedData(at, permit);
  return JSON.stringify({
    ...data,
    message: {
      ...data.message,
      permitted: { token: permit.token, amount: numberToHex(permit.amount) },
      nonce: permit.nonce,
      deadline: numberToHex(permit.deadline),
    },
  });
}

/** Returns the EIP-712 digest that the payer signs. */
export function hashPermitTransfer(at: { chainId: number; permit2: Hex; collector: Hex }, permit: PermitTransfer): Hex {
  return hashTypedData(permitTransferTypedData(at, permit));
}

/**
 * Returns call data that first submits the payer's EIP-2612 permit for Permit2, with the same amount and deadline, and
 * then moves the signed amount to the treasury.
 */
export function encodeCollectWithPermit(payer: Hex, permit: PermitTransfer, signature: Hex, allowance: Hex): Hex {
  const { token, amount, nonce, deadline } = permit;
  const { v, r, s } = splitSignature(allowance);
  const until = BigInt(deadline);
  const args = [token, payer, amount, BigInt(nonce), until, signature, amount, until, v, r, s] as const;
  return encodeFunctionData({ abi: collectorAbi, functionName: "collectWithPermit", args });
}

/** Returns call data that moves the signed amount from the payer to the treasury. */
export function encodeCollect(payer: Hex, permit: PermitTransfer, signature: Hex): Hex {
  const { token, amount, nonce, deadline } = permit;
  const args = [token, payer, amount, BigInt(nonce), BigInt(deadline), signature] as const;
  return encodeFunctionData({ abi: collectorAbi, functionName: "collect", args });
}

function initCode({ permit2, treasury }: CollectorParts): Hex {
  const args = encodeAbiParameters([{ type: "address" }, { type: "address" }], [permit2, treasury]);
  return concat([lowerCaseHex(artifact.bytecode), args]);
}
