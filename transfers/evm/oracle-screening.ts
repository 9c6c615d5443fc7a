import type { Hex } from "viem";
import { ChainError } from "../../chains/errors.ts";
import type { AccountKind } from "../../chains/evm/account-code.ts";
import { inspectAndSimulate } from "../../chains/evm/inspector.ts";
import {
  type BatchMember,
  type Call,
  type CallOutcome,
  type MemberOutcome,
  outcomesOfMembers,
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
): Promise<{ outcomes: MemberOutcome[]; refused: Set<string> }> {
  const { members, payers } = args;
  const checks = listChecks(chain, payers);
  const at = { multicall: chain.multicall, from: args.from };
  const outcomes = await simulateIsolated(chain.rpc, at, [...members, ...checks]);
  return {
    outcomes: outcomes.slice(0, members.length),
    refused: readRefused(deps, chain, payers, outcomes.slice(members.length)),
  };
}

/** Reads, plain keys' transfers and payers, which one call can read, simulate and screen. */
type Reading = {
  from: Hex;
  reads: readonly Call[];
  members: readonly Pick<BatchMember, "calls">[];
  payers: readonly string[];
};

/** The outcomes of a reading, in order. A member that failed among the others must be simulated again alone. */
type Read = { reads: CallOutcome[]; outcomes: (CallOutcome | undefined)[]; refused: Set<string> };

/** Makes reads, simulates plain keys' transfers and screens payers in one call. */
export async function readScreened(deps: ScreeningDeps, chain: EvmChain, reading: Reading): Promise<Read> {
  const { members } = reading;
  const at = { multicall: chain.multicall, from: reading.from };
  const required = listRequired(chain, reading);
  const together = await simulateBatch(chain.rpc, at, [...required, ...members]);
  // When a member makes the whole call fail, the reads and the screening are called again without the members.
  const calls = required.flatMap((one) => one.calls);
  const answers =
    together.size > 0 ? required.flatMap((one) => together.get(one) ?? []) : await simulateCalls(chain.rpc, at, calls);
  const outcomes = members.map((member) => together.get(member));
  return toRead(deps, chain, reading, { answers, outcomes });
}

/**
 * Does the same and reads the accounts' kinds, in one call. `found` is undefined if an account has code, because code must
 * not run among other transfers, and if the calls cannot be made in this way. Returns undefined if the kinds are not known
 * either.
 */
export async function inspectScreened(
  deps: ScreeningDeps,
  chain: EvmChain,
  { accounts, ...reading }: Reading & { accounts: readonly Hex[] },
): Promise<{ kinds: AccountKind[]; found: Read | undefined } | undefined> {
  const { reads, members } = reading;
  const at = { multicall: chain.multicall, from: reading.from };
  const required = listRequired(chain, reading);
  const all = [...required, ...members];
  const inspected = await inspectAndSimulate(chain.rpc, at, { accounts, calls: all.flatMap((one) => one.calls) });
  if (!inspected?.outcomes) return inspected && { kinds: inspected.kinds, found: undefined };
  const together = outcomesOfMembers(all, inspected.outcomes);
  const answers = required.flatMap((one) => together.get(one) ?? []);
  // A check that fails among transfers must be made without them.
  if (answers.length < required.length || !answers.slice(reads.length).every(({ ok }) => ok))
    return { kinds: inspected.kinds, found: undefined };
  const outcomes = members.map((member) => together.get(member));
  return { kinds: inspected.kinds, found: toRead(deps, chain, reading, { answers, outcomes }) };
}

/** Lists the calls of a reading that must have an answer: its reads and the checks of its payers, in this order. */
function listRequired(chain: EvmChain, { reads, payers }: Reading): Pick<BatchMember, "calls">[] {
  return [...reads.map((call) => ({ calls: [call] })), ...listChecks(chain, payers)];
}

function toRead(
  deps: ScreeningDeps,
  chain: EvmChain,
  { reads, payers }: Reading,
  { answers, outcomes }: { answers: readonly CallOutcome[]; outcomes: Read["outcomes"] },
): Read {
  if (answers.length < reads.length + listChecks(chain, payers).length)
    throw new ChainError("rpc_answer", { detail: "balances and screening" });
  const refused = readRefused(deps, chain, payers, answers.slice(reads.length));
  return { reads: answers.slice(0, reads.length), outcomes, refused };
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
