import { type Hex, maxUint256, type PrivateKeyAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { collectorAddress } from "../../chains/evm/collector.ts";
import { disburserAddress } from "../../chains/evm/disburser.ts";
import { type EvmAsset, listEvmNetworks } from "../../ops/networks.ts";
import { networksFor, startChain, type TestChain, type TestChainOptions } from "./chain.ts";
import { deployCollector, deployDisburser, deployTestContract, testContract } from "./collector.ts";

/** Tokens of every kind on one chain. */
export type Kinds = {
  chain: TestChain;
  permit2: Hex;
  collector: Hex;
  /** CAIP-19, in lower case, by what a buyer does. `usdc` is EIP-3009. */
  assets: { usdc: string; permit: string; zeroFirst: string; push: string };
  /** Members of the chain's networks entry that name them all. */
  change: Record<string, unknown>;
};

/**
 * A chain with USDC, a token with EIP-2612 and one like USDT for Permit2, and a token that is pushed; with a Permit2 of
 * our own making (Uniswap publishes no code to deploy), a Collector and a Disburser that the treasury has approved, unless
 * these are left to be deployed. The treasury has no gas when it has approved.
 */
export async function startKinds(options: TestChainOptions & { collector?: false } = {}): Promise<Kinds> {
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
      ...{ asset: assets.permit, symbol: "PRMT", name: "Permit Token", kind: "permit2" },
      allowance: { by: "permit", domain: { name: "Permit Token", version: "1" } },
    },
    {
      ...common,
      ...{ asset: assets.zeroFirst, symbol: "ZRF", name: "Zero First", kind: "permit2" },
      allowance: { by: "approve", fromZero: true },
    },
    { ...common, asset: assets.push, symbol: "PUSH", name: "Pushed Token", kind: "push" },
  ];
  if (options.collector !== false) {
    await deployDisburser(client, treasury);
    await approveDisburser(chain, Object.values(assets).slice(1));
  }
  return { chain, permit2, collector, assets, change: { permit2, assets: entries } };
}

/** The treasury lets its Disburser move assets, by transactions of its own. */
export async function approveDisburser(chain: TestChain, assets: readonly string[]): Promise<void> {
  const { address, privateKey } = chain.keys.treasury;
  const by = privateKeyToAccount(privateKey);
  await chain.client.setBalance({ address, value: 10n ** 18n });
  const spender = disburserAddress(address.toLowerCase() as Hex);
  for (const asset of assets)
    await write(chain, { token: tokenOf(asset), functionName: "approve", args: [spender, maxUint256], by });
  await chain.client.setBalance({ address, value: 0n });
}

/** Address of an asset's token. */
export function tokenOf(asset: string): Hex {
  return asset.slice(asset.lastIndexOf(":") + 1) as Hex;
}

/** Gives an account some of a test token (1000 when unset, with 6 decimals). */
export async function mintTestToken(chain: TestChain, asset: string, to: Hex, amount = 1_000_000_000n): Promise<void> {
  await write(chain, { token: tokenOf(asset), functionName: "mint", args: [to, amount] });
}

/** What an account holds of a test token. */
export function testTokenBalance(chain: TestChain, asset: string, of: Hex): Promise<bigint> {
  const { abi } = testContract("Tokens", "PermitToken");
  return chain.client.readContract({
    address: tokenOf(asset),
    abi,
    functionName: "balanceOf",
    args: [of],
  }) as Promise<bigint>;
}

/** A call of a test token's function, by the operator or by a holder. */
export async function write(
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
