import type { Hex } from "viem";
import {
  type Call,
  type CallOutcome,
  type Member,
  simulateCalls,
  simulateEach,
  simulateTogether,
} from "../chains/evm/multicall.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { askOracle, ORACLE_GAS, readOracle } from "../chains/evm/sanctions.ts";
import { ChainFault } from "../chains/faults.ts";
import type { Chain } from "../chains/open.ts";
import type { Metrics } from "../ops/metrics.ts";

/**
 * Returns which of these accounts (EVM: in lower case) the operator's list names on a chain. Throws when the list is not
 * available.
 */
export type ScreeningList = (chain: string, accounts: readonly string[]) => ReadonlySet<string>;
export type ScreeningDeps = { screeningList: ScreeningList; metrics: Pick<Metrics, "screeningFailures"> };

/** Reason for rejecting a payer that fails screening, the same for both providers. */
export const SCREENED_OUT = "the account is not served (screening)";

/**
 * Returns which of these accounts fail screening by the operator's list or the chain's sanctions oracle. The oracle takes
 * one call; Solana has none. Throws ChainFault `screening_down`, or the chain's error. No account passes then.
 */
export async function screenAccounts(
  deps: ScreeningDeps,
  chain: Chain,
  accounts: readonly string[],
): Promise<Set<string>> {
  if (chain.family === "solana") return askList(deps, chain.chain, accounts);
  const calls = listChecks(chain, accounts).flatMap(({ calls }) => calls);
  const outcomes = await simulateCalls(chain.rpc, chain, calls);
  return readRefused(deps, chain, accounts, outcomes);
}

/** Simulates members and screens payers in one call. Returns the outcomes of the members in order. */
export async function simulateScreened(
  deps: ScreeningDeps,
  chain: EvmChain,
  args: { from: Hex; members: readonly Member[]; payers: readonly string[] },
): Promise<{ outcomes: CallOutcome[]; refused: Set<string> }> {
  const { members, payers } = args;
  const checks = listChecks(chain, payers);
  const at = { multicall: chain.multicall, from: args.from };
  const outcomes = await simulateEach(chain.rpc, at, [...members, ...checks]);
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
  args: { from: Hex; reads: readonly Call[]; members: readonly Pick<Member, "calls">[]; payers: readonly string[] },
): Promise<{ reads: CallOutcome[]; outcomes: (CallOutcome | undefined)[]; refused: Set<string> }> {
  const { members, payers } = args;
  const at = { multicall: chain.multicall, from: args.from };
  const reads = args.reads.map((call) => ({ calls: [call] }));
  const checks = listChecks(chain, payers);
  const together = await simulateTogether(chain.rpc, at, [...reads, ...checks, ...members]);
  // When a member makes the whole call fail, the reads and the screening are called again without the members.
  const required = [...reads, ...checks];
  const calls = required.flatMap((one) => one.calls);
  const answers =
    together.size > 0 ? required.flatMap((one) => together.get(one) ?? []) : await simulateCalls(chain.rpc, at, calls);
  if (answers.length < required.length) throw new ChainFault("rpc_answer", { detail: "balances and screening" });
  return {
    reads: answers.slice(0, reads.length),
    outcomes: members.map((member) => together.get(member)),
    refused: readRefused(deps, chain, payers, answers.slice(reads.length)),
  };
}

function listChecks({ network }: EvmChain, accounts: readonly string[]): Member[] {
  const { screening } = network;
  if (!screening) return [];
  const oracle = screening.oracle as Hex;
  return accounts.map((account) => ({ calls: [askOracle(oracle, account as Hex)], gas: ORACLE_GAS, alone: false }));
}

function readRefused(
  deps: ScreeningDeps,
  chain: EvmChain,
  accounts: readonly string[],
  outcomes: readonly CallOutcome[],
): Set<string> {
  const refused = askList(deps, chain.chain, accounts);
  if (!chain.network.screening) return refused;
  const named = say(deps, { chain: chain.chain, provider: "oracle" }, () =>
    accounts.filter((_account, index) => readOracle(outcomes[index])),
  );
  for (const account of named) refused.add(account);
  return refused;
}

function askList(deps: ScreeningDeps, chain: string, accounts: readonly string[]): Set<string> {
  return new Set(say(deps, { chain, provider: "list" }, () => deps.screeningList(chain, accounts)));
}

function say<T>(deps: ScreeningDeps, who: { chain: string; provider: "list" | "oracle" }, ask: () => T): T {
  try {
    return ask();
  } catch (cause) {
    deps.metrics.screeningFailures.inc(who);
    throw cause instanceof ChainFault ? cause : new ChainFault("screening_down", { cause, detail: "the list" });
  }
}
