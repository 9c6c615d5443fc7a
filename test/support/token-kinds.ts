import { type Hex, maxUint256, type PrivateKeyAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { collectorAddress } from "../../chains/evm/collector-contract.ts";
import { disburserAddress } from "../../chains/evm/disburser-contract.ts";
import { type EvmAsset, listEvmNetworks } from "../../runtime/networks/read-networks.ts";
import { networksFor, startChain, type TestChain, type TestChainOptions } from "./evm-chain.ts";
import { deployCollector, deployDisburser, deployTestContract, testContract } from "./test-contracts.ts";

/** A chain with a token of every kind. */
export type TokenKinds = {
  chain: TestChain;
  permit2: Hex;
  collector: Hex;
  /** CAIP-19 in lower case, by how a buyer pays. `usdc` is an EIP-3009 token. */
  assets: { usdc: string; permit: string; zeroFirst: string; push: string };
  /** Overrides of the chain's networks entry that configure all these tokens. */
  change: Record<string, unknown>;
};

/**
 * Starts a chain with USDC, an EIP-2612 token and a USDT-like token for Permit2, and a token that buyers push. Deploys
 * a Permit2 stand-in (Uniswap publishes no deployable code) and, unless `collector` is false, a Collector and a
 * Disburser that the treasury has approved. The treasury has no gas left afterwards.
 */
export async function startTokenKinds(options: TestChainOptions & { collector?: false } = {}): Promise<TokenKinds> {
  const chain = await startChain(options);
  const { client } = chain;
  const permit2 = await deployTestContract(client, "Permit2", "Permit2");
  const treasury = chain.keys.treasury.address.toLowerCase() as Hex;
  const parts = { permit2, treasury };
  const collector = options.collector === false ? collectorAddress(parts) : await deployCollector(client, parts);
  const [usdc] = listEvmNetworks(await networksFor(chain))[0]?.assets ?? [];
  if (!usdc) throw new Error("the chain has no USDC");
  const deploy = async (contract: string) =>
    `${chain.id}/erc20:${await deployTestContract(client, "Tokens", contract)}` as const;
  const assets = {
    usdc: usdc.asset,
    permit: await deploy("PermitToken"),
    zeroFirst: await deploy("ZeroFirstToken"),
    push: await deploy("PermitToken"),
  };
  const common = { decimals: 6, peg: "iso4217/USD" };
  const entries: unknown[] = [
    usdc satisfies EvmAsset,
    {
      ...common,
      asset: assets.permit,
      symbol: "PRMT",
      name: "Permit Token",
      kind: "permit2",
      allowance: { by: "permit", domain: { name: "Permit Token", version: "1" } },
    },
    {
      ...common,
      asset: assets.zeroFirst,
      symbol: "ZRF",
      name: "Zero First",
      kind: "permit2",
      allowance: { by: "approve", zeroAllowanceFirst: true },
    },
    { ...common, asset: assets.push, symbol: "PUSH", name: "Pushed Token", kind: "push" },
  ];
  if (options.collector !== false) {
    await deployDisburser(client, treasury);
    await approveDisburser(chain, Object.values(assets).slice(1));
  }
  return { chain, permit2, collector, assets, change: { permit2, assets: entries } };
}

/** Approves the treasury's Disburser for these assets by the treasury's own transactions. */
export async function approveDisburser(chain: TestChain, assets: readonly string[]): Promise<void> {
  const { address, privateKey } = chain.keys.treasury;
  const by = privateKeyToAccount(privateKey);
  await chain.client.setBalance({ address, value: 10n ** 18n });
  const spender = disburserAddress(address.toLowerCase() as Hex);
  for (const asset of assets)
    await callTestToken(chain, { token: tokenOf(asset), functionName: "approve", args: [spender, maxUint256], by });
  await chain.client.setBalance({ address, value: 0n });
}

/** Returns the address of an asset's token. */
export function tokenOf(asset: string): Hex {
  return asset.slice(asset.lastIndexOf(":") + 1) as Hex;
}

/** Mints a test token to an account, `amount` in the smallest unit (default: 1000 with 6 decimals). */
export async function mintTestToken(chain: TestChain, asset: string, to: Hex, amount = 1_000_000_000n): Promise<void> {
  await callTestToken(chain, { token: tokenOf(asset), functionName: "mint", args: [to, amount] });
}

/** Returns an account's balance of a test token. */
export function testTokenBalance(chain: TestChain, asset: string, of: Hex): Promise<bigint> {
  const { abi } = testContract("Tokens", "PermitToken");
  return chain.client.readContract({
    address: tokenOf(asset),
    abi,
    functionName: "balanceOf",
    args: [of],
  }) as Promise<bigint>;
}

/** Sends a call of a test token's function, from the operator or from `by`. Returns the hash. Throws if it reverts. */
export async function callTestToken(
  chain: TestChain,
  call: { token: Hex; functionName: string; args: unknown[]; by?: PrivateKeyAccount },
): Promise<Hex> {
  const { token: address, functionName, args, by } = call;
  const { abi } = testContract("Tokens", "PermitToken");
  const hash = await chain.client.writeContract({ address, abi, functionName, args, ...(by ? { account: by } : {}) });
  const { status } = await chain.client.waitForTransactionReceipt({ hash });
  if (status !== "success") throw new Error(`${functionName} was reverted`);
  return hash;
}
