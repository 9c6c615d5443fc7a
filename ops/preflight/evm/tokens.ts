import { decodeFunctionResult, encodeFunctionData, hexToNumber, parseAbi } from "viem";
import { tokenAbi } from "../../../chains/evm/abi.ts";
import { listRequirements } from "../../../chains/evm/check-evm-chain.ts";
import type { Rpc } from "../../../chains/evm/evm-rpc.ts";
import type { EvmChain, EvmToken } from "../../../chains/evm/open-evm-chain.ts";
import { cleanText } from "../../../runtime/clean-text.ts";
import { failure, type Outcome, ok } from "../finding.ts";
import type { Check } from "../run-checks.ts";
import { callContract, readCode } from "./call-contract.ts";

/** Checks each token: its code, its decimals, its EIP-712 domain and the functions of its kind. */
export function tokenChecks(chain: EvmChain): Check[] {
  return [...chain.tokens.values()].map((token) => ({
    name: `${token.symbol} code`,
    async run() {
      const { symbol } = token;
      const code = await readCode(chain.rpc, token.token);
      if (code === "0x")
        return [failure(`${symbol} code`, `no contract at ${token.token}`, `Correct the address in ${token.asset}.`)];
      const found = ok(`${symbol} code`, `${code.length / 2 - 1} bytes at ${token.token}`);
      const domain = token.tokenDomain ? [await checkDomain(chain.rpc, token)] : [];
      return [found, await checkDecimals(chain.rpc, token), ...domain, await checkKind(chain, token)];
    },
  }));
}

async function checkDecimals(rpc: Rpc, token: EvmToken): Promise<Outcome> {
  const name = `${token.symbol} decimals`;
  const data = encodeFunctionData({ abi: tokenAbi, functionName: "decimals" });
  const answer = await callContract(rpc, { target: token.token, data });
  if (!answer.ok || answer.data.length !== 66)
    return failure(name, "the contract has no decimals()", "Correct the address: this is not a token.");
  const decimals = hexToNumber(answer.data);
  if (decimals === token.decimals) return ok(name, String(decimals));
  const detail = `the token has ${decimals}, the networks file ${token.decimals}`;
  return failure(name, detail, `Set decimals to ${decimals}: every amount would be wrong.`);
}

async function checkDomain(rpc: Rpc, token: EvmToken): Promise<Outcome> {
  const name = `${token.symbol} domain`;
  const data = encodeFunctionData({ abi: tokenAbi, functionName: "DOMAIN_SEPARATOR" });
  const answer = await callContract(rpc, { target: token.token, data });
  if (!answer.ok || answer.data === "0x")
    return failure(name, "the token has no DOMAIN_SEPARATOR()", "Choose another kind: buyers cannot sign for it.");
  const ours = `name "${token.tokenDomain?.name}", version "${token.tokenDomain?.version}"`;
  if (answer.data === token.separator) return ok(name, ours);
  const [itsName, itsVersion] = [await readText(rpc, token, "name"), await readText(rpc, token, "version")];
  const detail = `${ours} give another separator than the token's; its name() is "${itsName}", its version() "${itsVersion}"`;
  return failure(name, detail, "Correct the asset's domain: buyers' signatures would be worthless.");
}

async function checkKind(chain: EvmChain, token: EvmToken): Promise<Outcome> {
  const name = `${token.symbol} kind`;
  for (const { missing, call, isMet } of listRequirements(chain, token))
    if (!isMet(await callContract(chain.rpc, call)))
      return failure(name, `it is not of kind ${token.kind}: ${missing}`, "Correct kind or the address of the token.");
  return ok(name, token.kind);
}

const textAbi = parseAbi(["function name() view returns (string)", "function version() view returns (string)"]);

/** Returns a text that the token says about itself, or a question mark. */
async function readText(rpc: Rpc, { token }: EvmToken, functionName: "name" | "version"): Promise<string> {
  const answer = await callContract(rpc, { target: token, data: encodeFunctionData({ abi: textAbi, functionName }) });
  try {
    return answer.ok ? cleanText(decodeFunctionResult({ abi: textAbi, functionName, data: answer.data }), 40) : "?";
  } catch {
    return "?";
  }
}
