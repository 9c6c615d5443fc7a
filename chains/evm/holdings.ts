import { encodeFunctionData, type Hex, hexToBigInt } from "viem";
import { multicallReadAbi, tokenAbi } from "./abi.ts";
import { type Call, type CallOutcome, simulateCalls } from "./multicall.ts";
import type { EvmChain, EvmToken } from "./open.ts";

/**
 * What an account holds and has allowed. `balance` and `allowed` (to Permit2) in minor units, `gas` in wei;
 * `permitNonce` is what its next EIP-2612 permit has to name. What a token does not need is 0.
 */
export type Holding = { balance: bigint; allowed: bigint; permitNonce: bigint; gas: bigint };

/** Holdings in the order asked; one eth_call. A token that does not answer counts as 0. */
export async function readHoldings(
  chain: EvmChain,
  wanted: readonly { token: EvmToken; account: Hex }[],
): Promise<Holding[]> {
  const questions = wanted.map(({ token, account }) => listQuestions(chain, token, account));
  const outcomes = await simulateCalls(
    chain.rpc,
    chain,
    questions.flatMap((asked) => asked.map(({ call }) => call)),
  );
  let next = 0;
  return questions.map((asked) => {
    const holding: Holding = { balance: 0n, allowed: 0n, permitNonce: 0n, gas: 0n };
    for (const { member } of asked) holding[member] = toNumber(outcomes[next++]);
    return holding;
  });
}

function listQuestions(chain: EvmChain, token: EvmToken, account: Hex): { member: keyof Holding; call: Call }[] {
  const ask = (data: Hex): Call => ({ target: token.token, data });
  const balance = ask(encodeFunctionData({ abi: tokenAbi, functionName: "balanceOf", args: [account] }));
  if (token.kind === "eip3009") return [{ member: "balance", call: balance }];
  const data = encodeFunctionData({ abi: multicallReadAbi, functionName: "getEthBalance", args: [account] });
  const gas = { member: "gas" as const, call: { target: chain.multicall, data } };
  if (token.kind === "push") return [{ member: "balance", call: balance }, gas];
  const allowed = encodeFunctionData({ abi: tokenAbi, functionName: "allowance", args: [account, chain.permit2] });
  const questions = [
    { member: "balance" as const, call: balance },
    gas,
    { member: "allowed" as const, call: ask(allowed) },
  ];
  if (token.allowance.by === "approve") return questions;
  const nonce = encodeFunctionData({ abi: tokenAbi, functionName: "nonces", args: [account] });
  return [...questions, { member: "permitNonce", call: ask(nonce) }];
}

function toNumber(outcome: CallOutcome | undefined): bigint {
  return outcome?.ok && outcome.data.length === 66 ? hexToBigInt(outcome.data) : 0n;
}
