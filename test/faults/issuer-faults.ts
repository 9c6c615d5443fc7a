import { setTimeout as pause } from "node:timers/promises";
import { type Address, encodeFunctionData, type Hex, parseAbi } from "viem";
import { type EvmEnvironment, finalityBlocks } from "./evm-environment.ts";
import { proxyAbi } from "./evm-tokens.ts";
import type { Fault } from "./fault-scheduler.ts";
import type { ContractChange, ContractChanges } from "./gas-oracle-server.ts";
import type { Random } from "./seeded-random.ts";

const abi = parseAbi([
  "function pause()",
  "function unpause()",
  "function paused() view returns (bool)",
  "function setPaused(bool)",
  "function setFee(uint256)",
  "function feePoints() view returns (uint256)",
  "function silence(bool)",
  "function isSanctioned(address) view returns (bool)",
]);
/** The time within which a contract change must be mined, milliseconds. */
const changeTimeoutMs = 15_000;

/** What token issuers, and other owners of contracts that we depend on, may do. Every change is reverted afterwards. */
export async function issuerFaults(
  { client, contracts, tokens, blockMs }: EvmEnvironment,
  { contractChanges, random, takesFees }: { contractChanges: ContractChanges; random: Random; takesFees: boolean },
): Promise<Fault[]> {
  const { permit2, push } = tokens.address;
  /** Applies one change for a while, and then the other one until it holds. */
  const toggle = async (name: string, on: ContractChange, off: ContractChange) => {
    contractChanges.make(name, on);
    await contractChanges.until(name, changeTimeoutMs);
    await pause(random.between(1_500, 3_500));
    contractChanges.make(name, off);
    await contractChanges.until(name, changeTimeoutMs);
  };
  const isPaused = (token: Address) => client.readContract({ address: token, abi, functionName: "paused" });
  const pauseUsdc = (on: boolean): ContractChange => ({
    to: contracts.token,
    data: encodeFunctionData({ abi, functionName: on ? "pause" : "unpause" }),
    holds: async () => (await isPaused(contracts.token)) === on,
  });
  const pauseOther = (token: Hex, on: boolean): ContractChange => ({
    to: token,
    data: encodeFunctionData({ abi, functionName: "setPaused", args: [on] }),
    holds: async () => (await isPaused(token)) === on,
  });
  const setFee = (token: Hex, points: bigint): ContractChange => ({
    to: token,
    data: encodeFunctionData({ abi, functionName: "setFee", args: [points] }),
    holds: async () => (await client.readContract({ address: token, abi, functionName: "feePoints" })) === points,
  });
  const silence = (on: boolean): ContractChange => ({
    to: tokens.oracle,
    data: encodeFunctionData({ abi, functionName: "silence", args: [on] }),
    holds: async () => {
      const ask = { address: tokens.oracle, abi, functionName: "isSanctioned", args: [tokens.oracle] } as const;
      return (
        (await client.readContract(ask).then(
          () => false,
          () => true,
        )) === on
      );
    },
  });
  const admin = await client.readContract({ address: contracts.token, abi: proxyAbi, functionName: "admin" });
  await client.impersonateAccount({ address: admin });
  await client.setBalance({ address: admin, value: 10n ** 20n });
  const upgrade = async () => {
    const ask = { address: contracts.token, abi: proxyAbi, functionName: "implementation" } as const;
    const now = (await client.readContract(ask)).toLowerCase();
    // An upgrade to the same implementation is an upgrade, too.
    const next = random.chance(0.3) ? now : (tokens.implementations.find((one) => one.toLowerCase() !== now) ?? now);
    const data = encodeFunctionData({ abi: proxyAbi, functionName: "upgradeTo", args: [next as Address] });
    let sent = false;
    const holds = async () =>
      next === now ? sent : (await client.readContract(ask)).toLowerCase() === next.toLowerCase();
    contractChanges.make("upgrade", { to: contracts.token, account: admin, data, holds });
    sent = await pause(2 * blockMs, true);
    await contractChanges.until("upgrade", changeTimeoutMs);
    await pause(finalityBlocks * blockMs);
  };
  return [
    { name: "USDC is paused", run: () => toggle("pause", pauseUsdc(true), pauseUsdc(false)) },
    ...[permit2, push].map((token, index) => ({
      name: `the ${index === 0 ? "permit2" : "push"} token is paused`,
      run: () => toggle(token, pauseOther(token, true), pauseOther(token, false)),
    })),
    { name: "USDC's proxy is upgraded", run: upgrade },
    { name: "the sanctions oracle is silent", run: () => toggle("oracle", silence(true), silence(false)) },
    ...(takesFees ? [permit2, push] : []).map((token, index) => ({
      name: `the ${index === 0 ? "permit2" : "push"} token takes a fee`,
      run: () => toggle(`fee ${token}`, setFee(token, BigInt(random.between(1, 500))), setFee(token, 0n)),
    })),
  ];
}
