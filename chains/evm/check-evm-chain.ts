import { encodeFunctionData, type Hex, hashDomain, hexToNumber, pad } from "viem";
import { ChainError } from "../errors.ts";
import { permit2Abi, tokenAbi } from "./abi.ts";
import { collectorCode } from "./collector-contract.ts";
import { disburserCode } from "./disburser-contract.ts";
import { encodeBytesTransfer, encodeTransfer } from "./eip3009.ts";
import { validateFeeModel } from "./fee-model.ts";
import { lowerCaseHex } from "./hex.ts";
import { type Call, type CallOutcome, simulateCalls } from "./multicall.ts";
import type { EvmChain, EvmToken } from "./open-evm-chain.ts";
import { throwChainError } from "./rpc-errors.ts";
import { oracleCall } from "./sanctions-oracle.ts";

/**
 * Compares the networks file with the chain: each endpoint's chain id, multicall, each token's decimals and the functions
 * of its kind, Permit2, and the code of the Collector and the Disburser. It does not check that the treasury has approved
 * the Disburser: payouts check that when they fail, because a missing approval delays only one asset's payouts.
 * Throws ChainError `wrong_chain` or `wrong_contract`, which must stop the process: a wrong domain makes buyers'
 * signatures worthless, and wrong decimals make every amount wrong.
 */
export async function checkEvmChain(chain: EvmChain): Promise<void> {
  await chain.checkEndpoints();
  const tokens = [...chain.tokens.values()];
  for (const token of tokens) await checkEvmToken(chain, token);
  if (tokens.some(({ kind }) => kind === "permit2")) await checkCollector(chain);
  if (tokens.some(({ kind }) => kind !== "eip3009")) await checkDisburser(chain);
  await checkOracle(chain);
  const wrongModel = await validateFeeModel(chain);
  if (wrongModel !== undefined) throw new ChainError("wrong_contract", { detail: wrongModel });
}

/**
 * Compares a token's decimals, its EIP-712 domain and the functions of its kind with the networks file. Throws ChainError
 * `wrong_contract` if they differ.
 */
export async function checkEvmToken(chain: EvmChain, token: EvmToken): Promise<void> {
  const read = (functionName: "DOMAIN_SEPARATOR" | "decimals"): Call => ({
    target: token.token,
    data: encodeFunctionData({ abi: tokenAbi, functionName }),
  });
  const ask = (calls: readonly Call[]) => simulateCalls(chain.rpc, chain, calls);
  const [decimals, separator] = await ask([read("decimals"), read("DOMAIN_SEPARATOR")]);
  if (!decimals?.ok || decimals.data.length !== 66 || hexToNumber(decimals.data) !== token.decimals)
    throw new ChainError("wrong_contract", { detail: `${token.asset} does not have ${token.decimals} decimals` });
  if (token.separator && (!separator?.ok || separator.data !== token.separator))
    throw new ChainError("wrong_contract", {
      detail: `the domain of ${token.asset} (name, version) does not match the token contract`,
    });
  const requirements = listRequirements(chain, token);
  const outcomes = await ask(requirements.map(({ call }) => call));
  for (const [index, { missing, isMet }] of requirements.entries()) {
    const outcome = outcomes[index];
    if (!outcome || !isMet(outcome))
      throw new ChainError("wrong_contract", { detail: `${token.asset} is not of kind ${token.kind}: ${missing}` });
  }
}

/** A function that a token of a kind must have. `missing` is the error if it does not. */
export type Requirement = { missing: string; call: Call; isMet: (outcome: CallOutcome) => boolean };

const isWord = (outcome: CallOutcome) => outcome.ok && outcome.data.length === 66;
/** An existing function reverts with a reason; a missing function reverts without one, or the fallback succeeds. */
const isRevertWithReason = (outcome: CallOutcome) => !outcome.ok && outcome.reason !== "reverted without a reason";

/** Returns the functions that a token must have for its kind. */
export function listRequirements(chain: EvmChain, token: EvmToken): Requirement[] {
  const { treasury } = chain;
  const call = (data: Hex): Call => ({ target: token.token, data });
  if (token.kind === "eip3009") {
    // An authorization that expired long ago, with an invalid signature.
    const invalid = { token: token.token, from: treasury, to: treasury, value: 1n, validBefore: 1, nonce: pad("0x1") };
    const signature: Hex = `0x${"11".repeat(64)}1b`;
    const args = [treasury, invalid.nonce] as const;
    const state = encodeFunctionData({ abi: tokenAbi, functionName: "authorizationState", args });
    const requirements: Requirement[] = [
      { missing: "it has no authorizationState", call: call(state), isMet: isWord },
      {
        missing: "it has no transferWithAuthorization with v, r and s",
        call: call(encodeTransfer(invalid, signature)),
        isMet: isRevertWithReason,
      },
    ];
    if (token.bytesSignatures)
      requirements.push({
        missing: "it has no transferWithAuthorization with bytes (bytesSignatures)",
        call: call(encodeBytesTransfer(invalid, signature)),
        isMet: isRevertWithReason,
      });
    return requirements;
  }
  const balance = encodeFunctionData({ abi: tokenAbi, functionName: "balanceOf", args: [treasury] });
  const requirements: Requirement[] = [{ missing: "it has no balanceOf", call: call(balance), isMet: isWord }];
  if (token.kind === "push") return requirements;
  const allowance = encodeFunctionData({ abi: tokenAbi, functionName: "allowance", args: [treasury, chain.permit2] });
  requirements.push({ missing: "it has no allowance", call: call(allowance), isMet: isWord });
  if (token.allowance.by === "permit") {
    const nonces = encodeFunctionData({ abi: tokenAbi, functionName: "nonces", args: [treasury] });
    requirements.push({ missing: "it has no nonces (EIP-2612)", call: call(nonces), isMet: isWord });
  }
  return requirements;
}

async function checkCollector(chain: EvmChain): Promise<void> {
  const { permit2, treasury, collector, chainId } = chain;
  const data = encodeFunctionData({ abi: permit2Abi, functionName: "DOMAIN_SEPARATOR" });
  const [separator] = await simulateCalls(chain.rpc, chain, [{ target: permit2, data }]);
  if (!separator?.ok || separator.data !== permit2Separator(chainId, permit2))
    throw new ChainError("wrong_contract", { detail: `there is no Permit2 at ${permit2} of ${chain.chain}` });
  await checkCode(chain, { name: "Collector", address: collector, code: collectorCode({ permit2, treasury }) });
}

function checkDisburser(chain: EvmChain): Promise<void> {
  const { disburser, treasury } = chain;
  return checkCode(chain, { name: "Disburser", address: disburser, code: disburserCode(treasury) });
}

async function checkCode(chain: EvmChain, expected: { name: string; address: Hex; code: Hex }): Promise<void> {
  const { name, address } = expected;
  const code = await chain.rpc({ method: "eth_getCode", params: [address, "latest"] }).catch(throwChainError);
  if (code === "0x")
    throw new ChainError("wrong_contract", {
      detail: `the ${name} of ${chain.chain} is not deployed at ${address}: npm run admin -- ${name.toLowerCase()} deploy ${chain.chain}`,
    });
  if (code.toLowerCase() !== expected.code)
    throw new ChainError("wrong_contract", { detail: `the code at ${address} of ${chain.chain} is not the ${name}` });
}

async function checkOracle(chain: EvmChain): Promise<void> {
  const oracle = chain.network.screening?.oracle;
  if (!oracle) return;
  const [answer] = await simulateCalls(chain.rpc, chain, [oracleCall(lowerCaseHex(oracle), chain.treasury)]);
  if (!answer || !isWord(answer))
    throw new ChainError("wrong_contract", {
      detail: `the sanctions oracle of ${chain.chain} does not answer isSanctioned`,
    });
}

/** Returns Permit2's domain separator. Its EIP-712 domain has no version. */
export function permit2Separator(chainId: number, verifyingContract: Hex): Hex {
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
