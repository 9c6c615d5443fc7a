import { encodeFunctionData, type Hex, maxUint256, parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { type ChainClient, operator } from "../../local/chain-client.ts";
import { circleContract } from "../../local/circle-artifacts.ts";
import type { ChainKeys } from "../../local/networks-document.ts";
import type { Contracts } from "../../local/usdc.ts";
import { deployCollector, deployDisburser, deployTestContract } from "../support/test-contracts.ts";
import { DUST } from "./money-invariants.ts";

/** The tokens of the EVM chain, by how buyers pay with them. */
export type TokenKind = "usdc" | "permit2" | "push";

/** The tokens of a run, and the contracts around them. Addresses in lower case. */
export type EvmTokens = {
  /** Every token of the networks document. */
  address: Record<TokenKind, Hex>;
  /** CAIP-19. */
  asset: Record<TokenKind, string>;
  permit2: Hex;
  collector: Hex;
  disburser: Hex;
  oracle: Hex;
  /** A token outside the networks document that emits false logs. */
  garbage: Hex;
  /** The implementations between which USDC's proxy may be upgraded; it starts with the first one. */
  implementations: readonly Hex[];
  /** Entries of the networks document. */
  entries: Record<TokenKind, Record<string, unknown>>;
};

/** The ABI of Circle's proxy. */
export const proxyAbi = parseAbi([
  "function admin() view returns (address)",
  "function implementation() view returns (address)",
  "function upgradeTo(address)",
]);

/** Deploys a Permit2 token and a push token, both with issuer controls, and the contracts that third parties use. */
export async function deployTokens(args: {
  client: ChainClient;
  id: string;
  contracts: Contracts;
  keys: ChainKeys;
}): Promise<EvmTokens> {
  const { client, id, contracts, keys } = args;
  const permit2 = await deployTestContract(client, "Permit2", "Permit2");
  const treasury = keys.treasury.address.toLowerCase() as Hex;
  const collector = await deployCollector(client, { permit2, treasury });
  const address = {
    usdc: contracts.token.toLowerCase() as Hex,
    permit2: await deployTestContract(client, "Tokens", "IssuerToken"),
    push: await deployTestContract(client, "Tokens", "IssuerToken"),
  };
  const assetOf = (token: Hex) => `${id}/erc20:${token}`;
  const asset = { usdc: assetOf(address.usdc), permit2: assetOf(address.permit2), push: assetOf(address.push) };
  const common = { decimals: 6, peg: "iso4217/USD", dust: String(DUST) };
  const disburser = await deployDisburser(client, treasury);
  for (const token of [address.permit2, address.push]) await approve(client, { token, disburser, keys });
  return {
    address,
    asset,
    permit2,
    collector,
    disburser,
    oracle: await deployTestContract(client, "Oracle", "Oracle"),
    garbage: await deployTestContract(client, "Hostile", "GarbageToken"),
    implementations: [await readImplementation(client, contracts), await deployImplementation(client)],
    entries: {
      usdc: {
        ...common,
        asset: asset.usdc,
        symbol: "USDC",
        name: "USD Coin",
        kind: "eip3009",
        domain: { name: "USD Coin", version: "2" },
      },
      permit2: {
        ...common,
        asset: asset.permit2,
        symbol: "PRMT",
        name: "Permit Token",
        kind: "permit2",
        allowance: { by: "permit", domain: { name: "Permit Token", version: "1" } },
      },
      push: { ...common, asset: asset.push, symbol: "PUSH", name: "Pushed Token", kind: "push" },
    },
  };
}

function readImplementation(client: ChainClient, { token }: Contracts): Promise<Hex> {
  return client.readContract({ address: token, abi: proxyAbi, functionName: "implementation" });
}

/** Sends the treasury's approval of the Disburser for a token. */
async function approve(
  client: ChainClient,
  { token, disburser, keys }: { token: Hex; disburser: Hex; keys: ChainKeys },
): Promise<void> {
  const account = privateKeyToAccount(keys.treasury.privateKey);
  await client.setBalance({ address: account.address, value: 10n ** 18n });
  const abi = parseAbi(["function approve(address, uint256)"]);
  const data = encodeFunctionData({ abi, functionName: "approve", args: [disburser, maxUint256] });
  await client.waitForTransactionReceipt({ hash: await client.sendTransaction({ account, to: token, data }) });
}

/** Deploys Circle's version 2.2 again, at another address. */
async function deployImplementation(client: ChainClient): Promise<Hex> {
  const deploy = async (contract: ReturnType<typeof circleContract>) => {
    const hash = await client.deployContract({ ...contract, args: [], account: operator });
    const { contractAddress } = await client.waitForTransactionReceipt({ hash });
    if (!contractAddress) throw new Error("the deployment created no contract");
    return contractAddress;
  };
  const checker = await deploy(circleContract("util/SignatureChecker.sol/SignatureChecker"));
  return deploy(circleContract("v2/FiatTokenV2_2.sol/FiatTokenV2_2", { SignatureChecker: checker }));
}
