import { parseAbi, toEventSelector } from "viem";
import { keccak256 } from "../keccak256.ts";

/** The functions that we use of ERC-20, EIP-2612 and EIP-3009 (with v, r and s). */
export const tokenAbi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "function balanceOf(address account) view returns (uint256)",
  "function allowance(address owner, address spender) view returns (uint256)",
  "function nonces(address owner) view returns (uint256)",
  "function approve(address spender, uint256 value) returns (bool)",
  "function transfer(address to, uint256 value) returns (bool)",
  "function decimals() view returns (uint8)",
]);

/** The EIP-3009 overload that USDC has since version 2.2. It takes a signature of any length, as smart wallets need. */
export const bytesTokenAbi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
]);

/** The view functions that we use of Permit2 (SignatureTransfer). */
export const permit2Abi = parseAbi([
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "function nonceBitmap(address owner, uint256 word) view returns (uint256)",
]);

/** The view functions that we use of Multicall3. */
export const multicallReadAbi = parseAbi([
  "function getEthBalance(address account) view returns (uint256)",
  "function getBlockNumber() view returns (uint256)",
]);

/** The Multicall3 function that makes calls. It takes one word less per call than aggregate3. */
export const multicallAbi = parseAbi([
  "function tryAggregate(bool requireSuccess, (address target, bytes callData)[] calls) payable returns ((bool success, bytes returnData)[] returnData)",
]);

export const TRANSFER_TOPIC = toEventSelector("Transfer(address,address,uint256)");
/** EIP-3009. A token emits it beside the Transfer that it authorizes, usually directly before it. */
export const AUTHORIZATION_USED_TOPIC = toEventSelector("AuthorizationUsed(address,bytes32)");

/** EIP-3009, "TypeHash". */
export const TRANSFER_WITH_AUTHORIZATION_TYPEHASH = keccak256(
  Buffer.from(
    "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)",
  ),
);
