import { encodeFunctionData, type Hex, hexToBigInt, maxUint256 } from "viem";
import { multicallReadAbi, permit2Abi, tokenAbi } from "../../../chains/evm/abi.ts";
import { permit2Separator } from "../../../chains/evm/check-evm-chain.ts";
import { collectorCode } from "../../../chains/evm/collector-contract.ts";
import { disburserCode } from "../../../chains/evm/disburser-contract.ts";
import { lowerCaseHex } from "../../../chains/evm/hex.ts";
import { simulateCalls } from "../../../chains/evm/multicall.ts";
import type { EvmChain, EvmToken } from "../../../chains/evm/open-evm-chain.ts";
import { decodeOracleResult, oracleCall } from "../../../chains/evm/sanctions-oracle.ts";
import { failure, ok, warning } from "../finding.ts";
import type { Check } from "../run-checks.ts";
import { callContract, readCode } from "./call-contract.ts";

/** Checks the contracts that the chain's assets need, and the sanctions oracle if there is one. */
export function contractChecks(chain: EvmChain): Check[] {
  const tokens = [...chain.tokens.values()];
  const disbursed = tokens.filter(({ kind }) => kind !== "eip3009");
  const { permit2, treasury, collector, disburser } = chain;
  return [
    multicallCheck(chain),
    ...(tokens.some(({ kind }) => kind === "permit2")
      ? [
          permit2Check(chain),
          codeCheck(chain, { name: "Collector", address: collector, code: collectorCode({ permit2, treasury }) }),
        ]
      : []),
    ...(disbursed.length > 0
      ? [codeCheck(chain, { name: "Disburser", address: disburser, code: disburserCode(treasury) })]
      : []),
    ...disbursed.map((token) => approvalCheck(chain, token)),
    ...oracleChecks(chain),
  ];
}

function multicallCheck(chain: EvmChain): Check {
  const name = "Multicall3";
  return {
    name,
    async run() {
      const address = chain.multicall;
      const remedy =
        "Correct multicall; Multicall3 is at 0xcA11bde05977b3631167028862bE2a173976CA11 of nearly every chain.";
      if ((await readCode(chain.rpc, address)) === "0x") return [failure(name, `no contract at ${address}`, remedy)];
      const data = encodeFunctionData({ abi: multicallReadAbi, functionName: "getBlockNumber" });
      const [answer] = await simulateCalls(chain.rpc, chain, [{ target: address, data }]);
      return [answer?.ok ? ok(name, `at ${address}`) : failure(name, `${address} is another contract`, remedy)];
    },
  };
}

function permit2Check({ rpc, permit2, chainId }: EvmChain): Check {
  const name = "Permit2";
  const data = encodeFunctionData({ abi: permit2Abi, functionName: "DOMAIN_SEPARATOR" });
  return {
    name,
    async run() {
      const answer = await callContract(rpc, { target: permit2, data });
      if (answer.ok && answer.data === permit2Separator(chainId, permit2)) return [ok(name, `at ${permit2}`)];
      const detail = `${answer.ok && answer.data === "0x" ? "no contract" : "another contract"} at ${permit2}`;
      return [failure(name, detail, "Correct permit2, or remove the assets of kind permit2.")];
    },
  };
}

function codeCheck(
  { rpc, chain }: EvmChain,
  contract: { name: "Collector" | "Disburser"; address: Hex; code: Hex },
): Check {
  const { name, address } = contract;
  return {
    name,
    async run() {
      const code = await readCode(rpc, address);
      if (code === contract.code) return [ok(name, `at ${address}`)];
      const remedy = `Deploy it: npm run admin -- ${name.toLowerCase()} deploy ${chain}.`;
      if (code === "0x") return [failure(name, `not deployed at ${address}`, remedy)];
      return [failure(name, `other code at ${address}`, "Use another treasury: this address is taken on this chain.")];
    },
  };
}

/** A payout needs the treasury's approval; without it only this asset's payouts are held. */
function approvalCheck({ rpc, chain, treasury, disburser }: EvmChain, token: EvmToken): Check {
  const name = `${token.symbol} approval`;
  const data = encodeFunctionData({ abi: tokenAbi, functionName: "allowance", args: [treasury, disburser] });
  return {
    name,
    async run() {
      const answer = await callContract(rpc, { target: token.token, data });
      const allowed = answer.ok && answer.data.length === 66 ? hexToBigInt(answer.data) : 0n;
      if (allowed > maxUint256 / 2n) return [ok(name, "the treasury has approved the Disburser")];
      const remedy = `Approve it, or payouts are held: npm run admin -- disburser approve ${chain}.`;
      return [warning(name, "the treasury has not approved the Disburser", remedy)];
    },
  };
}

function oracleChecks({ rpc, network, treasury }: EvmChain): Check[] {
  const name = "screening oracle";
  const { screening } = network;
  if (!screening) return [];
  const oracle = lowerCaseHex(screening.oracle);
  return [
    {
      name,
      async run() {
        const answer = await callContract(rpc, oracleCall(oracle, treasury));
        const isListed = (() => {
          try {
            return decodeOracleResult(answer);
          } catch {
            return undefined;
          }
        })();
        if (isListed === false) return [ok(name, `at ${oracle}`)];
        if (isListed)
          return [failure(name, `${oracle} lists the treasury as sanctioned`, "Find out why before you go live.")];
        const remedy = "Correct screening.oracle: no payer is served while it does not answer.";
        return [failure(name, `${oracle} does not answer isSanctioned`, remedy)];
      },
    },
  ];
}
