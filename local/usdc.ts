import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import {
  type Address,
  encodeFunctionData,
  getAbiItem,
  getAddress,
  type Hex,
  type PrivateKeyAccount,
  parseEther,
} from "viem";
import { z } from "zod";
import { type ChainClient, operator } from "./chain-client.ts";
import { circleContract, usdcAbi } from "./circle-artifacts.ts";

/** The contracts of a local chain that the service uses. */
export type Contracts = {
  token: Address;
  multicall: Address;
  /** Further tokens with the same code, for measurements with several assets. */
  otherTokens?: readonly Address[];
};

const decimals = 6;
/** The proxy's admin cannot call the token, so it must not be the operator. */
const proxyAdmin = getAddress("0x000000000000000000000000000000000000ad01");
const lostAndFound = getAddress("0x000000000000000000000000000000000000ad02");
const allowance = 2n ** 128n;

/**
 * Deploys Multicall3 and Circle's USDC (the proxy and version 2.2, initialized as on a real network) on an empty chain, with
 * the operator as minter.
 * @param tokens the number of tokens
 */
export async function deployContracts(chain: ChainClient, { tokens = 1 } = {}): Promise<Contracts> {
  const multicall = await deploy(chain, { abi: [], bytecode: multicallCode() });
  const checker = await deploy(chain, circleContract("util/SignatureChecker.sol/SignatureChecker"));
  const logic = circleContract("v2/FiatTokenV2_2.sol/FiatTokenV2_2", { SignatureChecker: checker });
  const implementation = await deploy(chain, logic);
  const token = await deployToken(chain, implementation);
  const otherTokens: Address[] = [];
  while (otherTokens.length < tokens - 1) otherTokens.push(await deployToken(chain, implementation));
  return { token, multicall, otherTokens };
}

async function deployToken(chain: ChainClient, implementation: Address): Promise<Address> {
  const token = await deploy(chain, circleContract("v1/FiatTokenProxy.sol/FiatTokenProxy"), [implementation]);
  const us = operator.address;
  const call = { address: token, abi: usdcAbi } as const;
  const write = async (hash: Promise<Hex>) => mined(chain, await hash);
  await write(chain.writeContract({ ...call, functionName: "changeAdmin", args: [proxyAdmin] }));
  const names = ["USD Coin", "USDC", "USD"] as const;
  await write(chain.writeContract({ ...call, functionName: "initialize", args: [...names, decimals, us, us, us, us] }));
  await write(chain.writeContract({ ...call, functionName: "initializeV2", args: [names[0]] }));
  await write(chain.writeContract({ ...call, functionName: "initializeV2_1", args: [lostAndFound] }));
  await write(chain.writeContract({ ...call, functionName: "initializeV2_2", args: [[], names[1]] }));
  await write(chain.writeContract({ ...call, functionName: "configureMinter", args: [us, allowance] }));
  return token;
}

/**
 * Uses the contracts of a forked network, and makes the operator a minter by impersonating the token's master minter. Works
 * only for Circle's own USDC.
 */
export async function adoptContracts(chain: ChainClient, { token, multicall }: Contracts): Promise<Contracts> {
  for (const [variable, address] of Object.entries({ FORK_USDC: token, FORK_MULTICALL: multicall })) {
    const code = await chain.getCode({ address });
    if (code === undefined) throw new Error(`${variable} is an address without code on the forked network`);
  }
  const master = await chain.readContract({ address: token, abi: usdcAbi, functionName: "masterMinter" });
  await fundGas(chain, [operator.address, master]);
  await chain.impersonateAccount({ address: master });
  const args = [operator.address, allowance] as const;
  const data = encodeFunctionData({ abi: usdcAbi, functionName: "configureMinter", args });
  await mined(chain, await chain.sendTransaction({ account: master, to: token, data }));
  await chain.stopImpersonatingAccount({ address: master });
  return { token, multicall };
}

/** Mints an amount to each account. Returns when the last mint is in a block. */
export async function mintUsdc(
  chain: ChainClient,
  token: Address,
  to: readonly Address[],
  amount: bigint,
): Promise<void> {
  const first = await chain.getTransactionCount({ address: operator.address, blockTag: "pending" });
  let last: Hex | undefined;
  for (const [index, receiver] of to.entries()) {
    const data = encodeFunctionData({ abi: usdcAbi, functionName: "mint", args: [receiver, amount] });
    last = await chain.sendTransaction({ to: token, data, nonce: first + index, gas: 300_000n });
  }
  if (last !== undefined) await mined(chain, last);
}

/** Sets the ether balance of each account, for gas. */
export async function fundGas(chain: ChainClient, to: readonly Address[], ether = "1000"): Promise<void> {
  for (const address of to) await chain.setBalance({ address, value: parseEther(ether) });
}

/** Returns the balance of an account, in the token's smallest unit. */
export function usdcBalance(chain: ChainClient, token: Address, of: Address): Promise<bigint> {
  return chain.readContract({ address: token, abi: usdcAbi, functionName: "balanceOf", args: [of] });
}

/** Sends tokens with a transaction of the holder, and returns its hash once it is in a block. */
export async function transferUsdc(
  chain: ChainClient,
  token: Address,
  from: PrivateKeyAccount,
  to: Address,
  amount: bigint,
): Promise<Hex> {
  const data = encodeFunctionData({ abi: usdcAbi, functionName: "transfer", args: [to, amount] });
  const hash = await chain.sendTransaction({ account: from, to: token, data });
  await mined(chain, hash);
  return hash;
}

/** One `Transfer` log of the token. */
export type TokenTransfer = {
  args: { from: Address; to: Address; value: bigint };
  transactionHash: Hex;
  blockNumber: bigint;
  logIndex: number;
};

/** Returns the token's transfers from or to an account since a block, oldest first. */
export async function listTransfers(
  chain: ChainClient,
  token: Address,
  { from, to, since }: { from?: Address; to?: Address; since: bigint },
): Promise<TokenTransfer[]> {
  const args = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  const event = getAbiItem({ abi: usdcAbi, name: "Transfer" });
  const logs = await chain.getLogs({ address: token, event, args, fromBlock: since, strict: true });
  return logs.map(({ args: { from, to, value }, transactionHash, blockNumber, logIndex }) => {
    return { args: { from, to, value }, transactionHash, blockNumber, logIndex };
  });
}

async function deploy(chain: ChainClient, { abi, bytecode }: ReturnType<typeof circleContract>, args: unknown[] = []) {
  const receipt = await mined(chain, await chain.deployContract({ abi, bytecode, args }));
  if (!receipt.contractAddress) throw new Error("the deployment created no contract");
  return getAddress(receipt.contractAddress);
}

/** Waits for a transaction. Throws when it reverts. */
async function mined(chain: ChainClient, hash: Hex) {
  const receipt = await chain.waitForTransactionReceipt({ hash });
  if (receipt.status !== "success") throw new Error("a transaction of the chain setup reverted");
  return receipt;
}

/** Returns Multicall3's creation code from a file of viem, which does not export it. */
function multicallCode(): Hex {
  const load = createRequire(import.meta.url);
  const file = join(dirname(load.resolve("viem")), "constants", "contracts.js");
  return z.object({ multicall3Bytecode: z.templateLiteral(["0x", z.string()]) }).parse(load(file)).multicall3Bytecode;
}
