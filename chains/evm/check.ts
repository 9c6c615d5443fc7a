import { encodeFunctionData, type Hex, hashDomain, hexToNumber, pad } from "viem";
import { ChainFault } from "../faults.ts";
import { permit2Abi, tokenAbi } from "./abi.ts";
import { collectorCode } from "./collector.ts";
import { disburserCode } from "./disburser.ts";
import { encodeBytesTransfer, encodeTransfer } from "./eip3009.ts";
import { type Call, type CallOutcome, simulateCalls } from "./multicall.ts";
import type { EvmChain, EvmToken } from "./open.ts";
import { throwFault } from "./rpc-errors.ts";
import { askOracle } from "./sanctions.ts";

/**
 * Compares what the networks file says with the chain: each endpoint's chain id; multicall; each token's decimals, and what its kind needs; the
 * Collector's code, the Permit2 it works with, and the Disburser's code. (Whether the treasury has approved the Disburser
 * is asked when a payout fails: that keeps payouts of one asset waiting, and nothing else.)
 * Throws ChainFault `wrong_chain` or `wrong_contract`, which must stop the process: signatures asked for with a wrong
 * domain, or amounts with wrong decimals, would be worthless or worse.
 */
export async function checkEvmChain(chain: EvmChain): Promise<void> {
  await chain.checkEndpoints();
  const tokens = [...chain.tokens.values()];
  for (const token of tokens) await checkToken(chain, token);
  if (tokens.some(({ kind }) => kind === "permit2")) await checkCollector(chain);
  if (tokens.some(({ kind }) => kind !== "eip3009")) await checkDisburser(chain);
  await checkOracle(chain);
}

async function checkToken(chain: EvmChain, token: EvmToken): Promise<void> {
  const read = (functionName: "DOMAIN_SEPARATOR" | "decimals"): Call => ({
    target: token.token,
    data: encodeFunctionData({ abi: tokenAbi, functionName }),
  });
  const ask = (calls: readonly Call[]) => simulateCalls(chain.rpc, chain, calls);
  const [decimals, separator] = await ask([read("decimals"), read("DOMAIN_SEPARATOR")]);
  if (!decimals?.ok || decimals.data.length !== 66 || hexToNumber(decimals.data) !== token.decimals)
    throw new ChainFault("wrong_contract", { detail: `${token.asset} does not have ${token.decimals} decimals` });
  if (token.separator && (!separator?.ok || separator.data !== token.separator))
    throw new ChainFault("wrong_contract", {
      detail: `the domain of ${token.asset} (name, version) is not the token's own`,
    });
  const wanted = listWanted(chain, token);
  const outcomes = await ask(wanted.map(({ call }) => call));
  for (const [index, { what, is }] of wanted.entries()) {
    const outcome = outcomes[index];
    if (!outcome || !is(outcome))
      throw new ChainFault("wrong_contract", { detail: `${token.asset} is not of kind ${token.kind}: ${what}` });
  }
}

type Wanted = { what: string; call: Call; is: (outcome: CallOutcome) => boolean };

const word = (outcome: CallOutcome) => outcome.ok && outcome.data.length === 66;
/** A function that is there says why it refuses; one that is not there reverts without a word, or does nothing. */
const speaks = (outcome: CallOutcome) => !outcome.ok && outcome.reason !== "reverted without a reason";

function listWanted(chain: EvmChain, token: EvmToken): Wanted[] {
  const { treasury } = chain;
  const call = (data: Hex): Call => ({ target: token.token, data });
  if (token.kind === "eip3009") {
    // Long past its time, and signed by nobody.
    const never = { token: token.token, from: treasury, to: treasury, value: 1n, validBefore: 1, nonce: pad("0x1") };
    const signature: Hex = `0x${"11".repeat(64)}1b`;
    const args = [treasury, never.nonce] as const;
    const state = encodeFunctionData({ abi: tokenAbi, functionName: "authorizationState", args });
    const what = "it has no transferWithAuthorization";
    const wanted: Wanted[] = [
      { what: "it has no authorizationState", call: call(state), is: word },
      { what: `${what} with v, r and s`, call: call(encodeTransfer(never, signature)), is: speaks },
    ];
    const bytes = { what: `${what} with bytes (bytesSignatures)`, call: call(encodeBytesTransfer(never, signature)) };
    return token.bytesSignatures ? [...wanted, { ...bytes, is: speaks }] : wanted;
  }
  const balance = encodeFunctionData({ abi: tokenAbi, functionName: "balanceOf", args: [treasury] });
  const wanted: Wanted[] = [{ what: "it has no balanceOf", call: call(balance), is: word }];
  if (token.kind === "push") return wanted;
  const allowance = encodeFunctionData({ abi: tokenAbi, functionName: "allowance", args: [treasury, chain.permit2] });
  wanted.push({ what: "it has no allowance", call: call(allowance), is: word });
  if (token.allowance.by === "permit") {
    const nonces = encodeFunctionData({ abi: tokenAbi, functionName: "nonces", args: [treasury] });
    wanted.push({ what: "it has no nonces (EIP-2612)", call: call(nonces), is: word });
  }
  return wanted;
}

async function checkCollector(chain: EvmChain): Promise<void> {
  const { permit2, treasury, collector, chainId } = chain;
  const data = encodeFunctionData({ abi: permit2Abi, functionName: "DOMAIN_SEPARATOR" });
  const [separator] = await simulateCalls(chain.rpc, chain, [{ target: permit2, data }]);
  if (!separator?.ok || separator.data !== permit2Separator(chainId, permit2))
    throw new ChainFault("wrong_contract", { detail: `there is no Permit2 at ${permit2} of ${chain.chain}` });
  await checkCode(chain, { name: "Collector", address: collector, code: collectorCode({ permit2, treasury }) });
}

function checkDisburser(chain: EvmChain): Promise<void> {
  const { disburser, treasury } = chain;
  return checkCode(chain, { name: "Disburser", address: disburser, code: disburserCode(treasury) });
}

async function checkCode(chain: EvmChain, ours: { name: string; address: Hex; code: Hex }): Promise<void> {
  const { name, address } = ours;
  const code = await chain.rpc({ method: "eth_getCode", params: [address, "latest"] }).catch(throwFault);
  if (code === "0x")
    throw new ChainFault("wrong_contract", {
      detail: `the ${name} of ${chain.chain} is not deployed at ${address}: npm run admin -- ${name.toLowerCase()} deploy ${chain.chain}`,
    });
  if (code.toLowerCase() !== ours.code)
    throw new ChainFault("wrong_contract", { detail: `the code at ${address} of ${chain.chain} is no ${name}` });
}

async function checkOracle(chain: EvmChain): Promise<void> {
  const oracle = chain.network.screening?.oracle as Hex | undefined;
  if (!oracle) return;
  const [answer] = await simulateCalls(chain.rpc, chain, [askOracle(oracle, chain.treasury)]);
  if (!answer || !word(answer))
    throw new ChainFault("wrong_contract", {
      detail: `the sanctions oracle of ${chain.chain} does not answer isSanctioned`,
    });
}

/** Permit2's EIP-712 domain has no version. */
function permit2Separator(chainId: number, verifyingContract: Hex): Hex {
  return hashDomain({
    domain: { name: "Permit2", chainId: BigInt(chainId), verifyingContract },
    types: {
      EIP712Domain: [
        { name: "name", type: "string" },
        { name: "chainId", type: "uint256" },
        { name: "verifyingContract", type: "address" },
      ],
    },
  });
}
