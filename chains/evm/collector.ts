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
import { splitSignature } from "./signature.ts";

/** contracts/Collector.sol. */
export const collectorAbi = parseAbi([
  "function collect(address token, address payer, uint256 amount, uint256 nonce, uint256 deadline, bytes signature)",
  "function collectWithPermit(address token, address payer, uint256 amount, uint256 nonce, uint256 deadline, bytes signature, uint256 allowance, uint256 permitDeadline, uint8 v, bytes32 r, bytes32 s)",
  "event Collected(address indexed token, address indexed payer, uint256 indexed nonce, uint256 amount)",
  "error WrongAmount(uint256 received, uint256 signed)",
]);

/** Of `Collected`. */
export const COLLECTED_TOPIC = toEventSelector("Collected(address,address,uint256,uint256)");

/** What a Collector is made of; the same two addresses give the same Collector at the same address on every network. */
export type CollectorParts = { permit2: Hex; treasury: Hex };

/** What to send to the CREATE2 deployer to put a Collector in place. */
export function encodeCollectorDeployment(parts: CollectorParts): { to: Hex; data: Hex } {
  return encodeDeployment(initCode(parts));
}

/** Where the Collector of a treasury stands, whether it is deployed or not. */
export function collectorAddress(parts: CollectorParts): Hex {
  return create2Address(initCode(parts));
}

/** The code that a deployed Collector has: ours, with its immutables filled in. */
export function collectorCode({ permit2, treasury }: CollectorParts): Hex {
  return deployedCode(artifact, { PERMIT2: permit2, TREASURY: treasury });
}

/** What a payer signs for Permit2 (SignatureTransfer). `amount` in minor units, `deadline` in Unix seconds. */
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

/** The typed data of a Permit2 transfer through a Collector, for signing and for hashing. */
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

/** The same as JSON for wallets: amounts as 0x hex; Permit2's domain has no version, and wallets expect no EIP712Domain. */
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

/** The digest that the payer signs. */
export function hashPermitTransfer(at: { chainId: number; permit2: Hex; collector: Hex }, permit: PermitTransfer): Hex {
  return hashTypedData(permitTransferTypedData(at, permit));
}

/** The same with the payer's EIP-2612 permit for Permit2 before it: over the same amount, with the same deadline. */
export function encodeCollectWithPermit(payer: Hex, permit: PermitTransfer, signature: Hex, allowance: Hex): Hex {
  const { token, amount, nonce, deadline } = permit;
  const { v, r, s } = splitSignature(allowance);
  const until = BigInt(deadline);
  const args = [token, payer, amount, BigInt(nonce), until, signature, amount, until, v, r, s] as const;
  return encodeFunctionData({ abi: collectorAbi, functionName: "collectWithPermit", args });
}

/** Call data that moves what the payer has signed to the treasury. */
export function encodeCollect(payer: Hex, permit: PermitTransfer, signature: Hex): Hex {
  const { token, amount, nonce, deadline } = permit;
  const args = [token, payer, amount, BigInt(nonce), BigInt(deadline), signature] as const;
  return encodeFunctionData({ abi: collectorAbi, functionName: "collect", args });
}

function initCode({ permit2, treasury }: CollectorParts): Hex {
  const args = encodeAbiParameters([{ type: "address" }, { type: "address" }], [permit2, treasury]);
  return concat([artifact.bytecode as Hex, args]);
}
