import { keccak256, parseAbi, toEventSelector, toHex } from "viem";

/** EIP-3009 as USDC has it, with v, r, s; and what the other rooms read of an ERC-20. */
export const tokenAbi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "function balanceOf(address account) view returns (uint256)",
  "function decimals() view returns (uint8)",
]);

/** Multicall3, the one function we use. */
export const multicallAbi = parseAbi([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) payable returns ((bool success, bytes returnData)[] returnData)",
]);

export const TRANSFER_TOPIC = toEventSelector("Transfer(address,address,uint256)");
/** EIP-3009; emitted by the token directly before the Transfer it allows. */
export const AUTHORIZATION_USED_TOPIC = toEventSelector("AuthorizationUsed(address,bytes32)");

/** EIP-3009, "TypeHash". */
export const TRANSFER_WITH_AUTHORIZATION_TYPEHASH = keccak256(
  toHex(
    "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)",
  ),
);
