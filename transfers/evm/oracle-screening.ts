import type { Hex } from "viem";
import { ChainError } from "../../chains/errors.ts";
import {
  type BatchMember,
  type Call,
  type CallOutcome,
  simulateBatch,
  simulateCalls,
  simulateIsolated,
} from "../../chains/evm/multicall.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { decodeOracleResult, ORACLE_GAS, oracleCall } from "../../chains/evm/sanctions-oracle.ts";
import { readHex } from "../../runtime/hex.ts";
import { countFailures, type ScreeningDeps, screenByList } from "../list-screening.ts";

/** Returns which of these accounts the operator's list or the chain's sanctions oracle names. The oracle takes one call. */
export async function screenByOracle(
  deps: ScreeningDeps,
  chain: EvmChain,
  accounts: readonly string[],
): Promise<Set<string>> {
  const calls = listChecks(chain, accounts).flatMap(({ calls }) => calls);
  const outcomes = await simulateCalls(chain.rpc, chain, calls);
  return readRefused(deps, chain, accounts, outcomes);
}

/** Simulates members and screens payers in one call. Returns the outcomes of the members in order. */
export async function simulateScreened(
  deps: ScreeningDeps,
  chain: EvmChain,
  args: { from: Hex; members: readonly BatchMember[]; payers: readonly string[] },
): Promise<{ outcomes: CallOutcome[]; refused: Set<string> }> {
  const { members, payers } = args;
  const checks = listChecks(chain, payers);
  const at = { multicall: chain.multicall, from: args.from };
  const outcomes = await simulateIsolated(chain.rpc, at, [...members, ...checks]);
  return {
    outcomes: outcomes.slice(0, members.length),
    refused: readRefused(deps, chain, payers, outcomes.slice(members.length)),
  };
}

/**
 * Makes reads, simulates plain keys' transfers and screens payers in one call. Returns the outcomes in order. A member that
 * failed among the others must be simulated again alone.
 */
export async function readScreened(
  deps: ScreeningDeps,
  chain: EvmChain,
  args: {
    from: Hex;
    reads: readonly Call[];
    members: readonly Pick<BatchMember, "calls">[];
    payers: readonly string[];
  },
): Promise<{ reads: CallOutcome[]; outcomes: (CallOutcome | undefined)[]; refused: Set<string> }> {
  const { members, payers } = args;
  const at = { multicall: chain.multicall, from: args.from };
  const reads = args.reads.map((call) => ({ calls: [call] }));
  const checks = listChecks(chain, payers);
  const together = await simulateBatch(chain.rpc, at, [...reads, ...checks, ...members]);
  // When a member makes the whole call fail, the reads and the screening are called again without the members.
  const required = [...reads, ...checks];
  const calls = required.flatMap((one) => one.calls);
  const answers =
    together.size > 0 ? required.flatMap((one) => together.get(one) ?? []) : await simulateCalls(chain.rpc, at, calls);
  if (answers.length < required.length) throw new ChainError("rpc_answer", { detail: "balances and screening" });
  return {
    reads: answers.slice(0, reads.length),
    outcomes: members.map((member) => together.get(member)),
    refused: readRefused(deps, chain, payers, answers.slice(reads.length)),
  };
}

function listChecks({ network }: EvmChain, accounts: readonly string[]): BatchMember[] {
  const { screening } = network;
  if (!screening) return [];
  const callFor = (account: string) => oracleCall(screening.oracle, readHex(account));
  return accounts.map((account) => ({ calls: [callFor(account)], gas: ORACLE_GAS, alone: false }));
}

function readRefused(
  deps: ScreeningDeps,
  chain: EvmChain,
  accounts: readonly string[],
  outcomes: readonly CallOutcome[],
): Set<string> {
  const refused = screenByList(deps, chain.chain, accounts);
  if (!chain.network.screening) return refused;
  const named = countFailures(deps, { chain: chain.chain, provider: "oracle" }, () =>
    accounts.filter((_account, index) => decodeOracleResult(outcomes[index])),
  );
  for (const account of named) refused.add(account);
  return refused;
}
