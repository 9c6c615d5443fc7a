import {
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  hashTypedData,
  parseAbi,
  toEventSelector,
} from "viem";
import artifact from "../../contracts/Disburser.json" with { type: "json" };
import { create2Address, deployedCode, encodeDeployment } from "./create2.ts";
import { lowerCaseHex } from "./hex.ts";
import { splitSignature } from "./signature.ts";

/** The ABI of contracts/Disburser.sol. */
export const disburserAbi = parseAbi([
  "function disburse(address token, address receiver, uint256 amount, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "function used(bytes32 nonce) view returns (bool)",
  "event Disbursed(address indexed token, address indexed receiver, bytes32 indexed nonce, uint256 amount)",
  "error NonceUsed(bytes32 nonce)",
  "error NotSigned()",
  "error TransferRefused()",
  "error WrongAmount(uint256 received, uint256 signed)",
]);

/** The topic of the Disbursed event. */
export const DISBURSED_TOPIC = toEventSelector("Disbursed(address,address,bytes32,uint256)");

/** A payout that the treasury signs. `amount` is in minor units of the token; `nonce` identifies the payout. */
export type Disbursement = { token: Hex; receiver: Hex; amount: bigint; nonce: Hex };

const types = {
  Disbursement: [
    { name: "token", type: "address" },
    { name: "receiver", type: "address" },
    { name: "amount", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

/** Returns the call to the CREATE2 deployer that deploys a treasury's Disburser. */
export function encodeDisburserDeployment(treasury: Hex): { to: Hex; data: Hex } {
  return encodeDeployment(initCode(treasury));
}

/** Returns the address of a treasury's Disburser, deployed or not. */
export function disburserAddress(treasury: Hex): Hex {
  return create2Address(initCode(treasury));
}

/** Returns the code of a treasury's deployed Disburser. */
export function disburserCode(treasury: Hex): Hex {
  return deployedCode(artifact, { TREASURY: treasury });
}

/** Returns the EIP-712 digest that the treasury signs. */
export function hashDisbursement(at: { chainId: number; disburser: Hex }, disbursement: Disbursement): Hex {
  const domain = { name: "Disburser", version: "1", chainId: at.chainId, verifyingContract: at.disburser };
  return hashTypedData({ domain, types, primaryType: "Disbursement", message: disbursement });
}

/** Returns call data that makes a signed payout. Any account may send it. */
export function encodeDisburse({ token, receiver, amount, nonce }: Disbursement, signature: Hex): Hex {
  const { v, r, s } = splitSignature(signature);
  return encodeFunctionData({
    abi: disburserAbi,
    functionName: "disburse",
    args: [token, receiver, amount, nonce, v, r, s],
  });
}

function initCode(treasury: Hex): Hex {
  return concat([lowerCaseHex(artifact.bytecode), encodeAbiParameters([{ type: "address" }], [treasury])]);
}
