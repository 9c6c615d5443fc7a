import { encodeFunctionData, type Hex } from "viem";
import { mergeCalls } from "../../runtime/merge-calls.ts";
import { multicallReadAbi, tokenAbi } from "./abi.ts";
import { encodeBalanceOf } from "./eip3009.ts";
import { type Call, type CallOutcome, simulateCalls } from "./multicall.ts";
import type { EvmChain, EvmToken } from "./open-evm-chain.ts";

/**
 * An account's balances and allowance. `balance` and `allowed` (the allowance for Permit2) are in minor units, `gas` is the
 * native balance in wei, `permitNonce` is the nonce of its next EIP-2612 permit. Members that the token's kind does not
 * need are 0.
 */
export type Holding = { balance: bigint; allowed: bigint; permitNonce: bigint; gas: bigint };

/**
 * Calls in one eth_call of several requests at most. Endpoints limit its gas; a balance takes 10,000, and what a longer
 * request takes concerns that request alone.
 */
const MOST_MERGED = 200;

type Simulate = (calls: readonly Call[]) => Promise<readonly CallOutcome[]>;
const merged = new WeakMap<EvmChain, Simulate>();

/** Returns a function whose concurrent calls share an eth_call. */
function simulateMerged(chain: EvmChain): Simulate {
  const simulate =
    merged.get(chain) ?? mergeCalls((calls) => simulateCalls(chain.rpc, chain, calls), { most: MOST_MERGED });
  merged.set(chain, simulate);
  return simulate;
}

/** An account and the token that it might pay with. */
type Wanted = { token: EvmToken; account: Hex };

/** Maximum number of holdings per eth_call: endpoints limit the gas of a call, and a token may take 30,000 per read. */
const HOLDINGS_PER_CALL = 250;

/** Returns holdings in the order of `wanted`. A call that fails counts as 0. Concurrent calls share an eth_call. */
export async function readHoldings(chain: EvmChain, wanted: readonly Wanted[]): Promise<Holding[]> {
  const parts: Promise<Holding[]>[] = [];
  for (let from = 0; from < wanted.length; from += HOLDINGS_PER_CALL)
    parts.push(readPart(chain, wanted.slice(from, from + HOLDINGS_PER_CALL)));
  return (await Promise.all(parts)).flat();
}

async function readPart(chain: EvmChain, wanted: readonly Wanted[]): Promise<Holding[]> {
  const callLists = wanted.map(({ token, account }) => listCalls(chain, token, account));
  const outcomes = await simulateMerged(chain)(callLists.flatMap((calls) => calls.map(({ call }) => call)));
  let next = 0;
  return callLists.map((calls) => {
    const holding: Holding = { balance: 0n, allowed: 0n, permitNonce: 0n, gas: 0n };
    for (const { member } of calls) holding[member] = toNumber(outcomes[next++]);
    return holding;
  });
}

function listCalls(chain: EvmChain, token: EvmToken, account: Hex): { member: keyof Holding; call: Call }[] {
  const callToken = (data: Hex): Call => ({ target: token.token, data });
  const balance = callToken(encodeBalanceOf(account));
  if (token.kind === "eip3009") return [{ member: "balance", call: balance }];
  const data = encodeFunctionData({ abi: multicallReadAbi, functionName: "getEthBalance", args: [account] });
  const gas = { member: "gas" as const, call: { target: chain.multicall, data } };
  if (token.kind === "push") return [{ member: "balance", call: balance }, gas];
  const allowed = encodeFunctionData({ abi: tokenAbi, functionName: "allowance", args: [account, chain.permit2] });
  const calls = [
    { member: "balance" as const, call: balance },
    gas,
    { member: "allowed" as const, call: callToken(allowed) },
  ];
  if (token.allowance.by === "approve") return calls;
  const nonce = encodeFunctionData({ abi: tokenAbi, functionName: "nonces", args: [account] });
  return [...calls, { member: "permitNonce", call: callToken(nonce) }];
}

function toNumber(outcome: CallOutcome | undefined): bigint {
  return outcome?.ok && outcome.data.length === 66 ? BigInt(outcome.data) : 0n;
}
