import { encodeFunctionData, type Hex, parseAbi, parseSignature } from "viem";
import { usdcAbi } from "../../local/circle-artifacts.ts";
import type { Signed } from "./payer-types.ts";

const collectorAbi = parseAbi([
  "function collect(address token, address payer, uint256 amount, uint256 nonce, uint256 deadline, bytes signature)",
  "function collectWithPermit(address token, address payer, uint256 amount, uint256 nonce, uint256 deadline, bytes signature, uint256 allowance, uint256 permitDeadline, uint8 v, bytes32 r, bytes32 s)",
]);

/** Returns the call data with which any relayer can submit a payer's authorization, to USDC or to the Collector. */
export function encodeRelay({ option, results }: Signed): Hex {
  const signed = option.actions.map((action, index) => {
    if (action.type !== "walletRpc") throw new Error("the option has no signature that a third party could submit");
    const [account, json] = action.data.params;
    const { message } = JSON.parse(String(json)) as { message: Record<string, unknown> };
    return { account: account as Hex, message, signature: (results[index]?.data[0] ?? "0x") as Hex };
  });
  const last = signed.at(-1);
  if (last === undefined) throw new Error("nothing was signed");
  if (!("permitted" in last.message)) return encodeAuthorization(last.message as Record<string, Hex>, last.signature);
  const { permitted, nonce, deadline } = last.message as { permitted: Record<string, Hex>; nonce: Hex; deadline: Hex };
  const [token, amount] = [permitted["token"] ?? "0x", BigInt(permitted["amount"] ?? 0)];
  const args = [token, last.account, amount, BigInt(nonce), BigInt(deadline), last.signature] as const;
  const [permit] = signed.slice(0, -1);
  if (permit === undefined) return encodeFunctionData({ abi: collectorAbi, functionName: "collect", args });
  const { value, deadline: until } = permit.message as Record<string, Hex>;
  const { r, s, v = 27n } = parseSignature(permit.signature);
  const allowed = [BigInt(value ?? 0), BigInt(until ?? 0), Number(v), r, s] as const;
  return encodeFunctionData({ abi: collectorAbi, functionName: "collectWithPermit", args: [...args, ...allowed] });
}

function encodeAuthorization(message: Record<string, Hex>, signature: Hex): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = message;
  const { r, s, v = 27n } = parseSignature(signature);
  const numbers = [BigInt(value ?? 0), BigInt(validAfter ?? 0), BigInt(validBefore ?? 0)] as const;
  return encodeFunctionData({
    abi: usdcAbi,
    functionName: "transferWithAuthorization",
    args: [from ?? "0x", to ?? "0x", ...numbers, nonce ?? "0x", Number(v), r, s],
  });
}
