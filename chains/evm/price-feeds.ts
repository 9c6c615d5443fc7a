import { decodeFunctionResult, encodeFunctionData, type Hex, parseAbi } from "viem";
import { cleanText } from "../../runtime/clean-text.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { type FeedPrice, isSamePrice } from "../endpoint-agreement.ts";
import { ChainError } from "../errors.ts";
import { isUnavailable, type Rpc } from "./evm-rpc.ts";
import { type CallOutcome, simulateCalls } from "./multicall.ts";
import type { EvmChain } from "./open-evm-chain.ts";

/** The functions that we use of Chainlink's AggregatorV3Interface. */
const abi = parseAbi([
  "function latestRoundData() view returns (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound)",
  "function decimals() view returns (uint8)",
  "function description() view returns (string)",
]);
const names = ["latestRoundData", "decimals", "description"] as const;

/**
 * The state of a price feed: `answer` with `decimals` decimals as of `updatedAt`, and the feed's own name ("EUR / USD").
 * `sequencer` is the state of the chain's uptime feed, if one was given.
 */
export type FeedState = FeedPrice & { updatedAt: Date; sequencer?: SequencerState };
/** Whether a rollup's sequencer is up, and since when. `since` is in 1970 until the feed receives its first report. */
type SequencerState = { isUp: boolean; since: Date };

/** A feed's state, whether two endpoints have shown it, and the endpoints that have shown another one. */
export type FeedReading = { state: FeedState; isConfirmed: boolean; disagreeing: readonly string[] };

/** Maximum length of a feed's name, in code points. */
const MAX_DESCRIPTION_LENGTH = 100;
/** The most by which the answers of two endpoints may differ, percent. A round may begin between the two readings. */
const MAX_DIFFERENCE = 1n;
/** Time limit for an endpoint that a feed is compared with, milliseconds. Buyers wait for it. */
const COMPARE_WITHIN_MS = 2_000;

/** `isUsable` returns true for a state whose price may be used at the time of the reading, which is the same for each state. */
type FeedArgs = { feed: Hex; sequencer: Hex | undefined; isUsable: (state: FeedState) => boolean };

/**
 * Reads a price feed with one endpoint after the other until two agree, those that lag last. Endpoints agree on the feed's name, its
 * decimals, its answer up to one percent, and on whether its price is usable. An endpoint that returns an error shows nothing. Throws
 * ChainError, also `wrong_contract`, and viem's error if none shows a state.
 */
export async function compareFeed(chain: EvmChain, { feed, sequencer, isUsable }: FeedArgs): Promise<FeedReading> {
  const { multicall } = chain;
  const read = (rpc: Rpc) => readFeed({ rpc, multicall }, feed, sequencer);
  const shown: { by: string; value: FeedState }[] = [];
  /** An honest endpoint that is some blocks behind shows an older round, whose time may be hours older. It is still usable. */
  const agree = (one: FeedState, other: FeedState) =>
    isSamePrice(one, other, MAX_DIFFERENCE) && isUsable(one) === isUsable(other);
  let failure: unknown;
  try {
    shown.push(await chain.readFromOneEndpoint(read));
  } catch (error) {
    if (isUnavailable(error)) throw error;
    failure = error;
  }
  for (const { name, rpc } of chain.listEndpointsInOrder()) {
    if (shown.some(({ by }) => by === name)) continue;
    const late = () => new ChainError("rpc_unreachable", { detail: `no price from ${name} in time` });
    const state = await withTimeout(read(rpc), COMPARE_WITHIN_MS, late).catch(() => undefined);
    if (!state) continue;
    const twin = shown.find(({ value }) => agree(value, state));
    if (twin) {
      const disagreeing = shown.filter((one) => one !== twin).map(({ by }) => by);
      return { state: twin.value, isConfirmed: true, disagreeing };
    }
    shown.push({ by: name, value: state });
  }
  const [first, ...others] = shown;
  if (!first) throw failure;
  return { state: first.value, isConfirmed: false, disagreeing: others.map(({ by }) => by) };
}

/**
 * Reads a price feed, and the sequencer uptime feed if one is given, with one eth_call. Throws ChainError `wrong_contract`
 * if a contract is not a feed, or for a time too large for a date.
 */
async function readFeed(
  at: Pick<EvmChain, "rpc" | "multicall">,
  feed: Hex,
  sequencer: Hex | undefined,
): Promise<FeedState> {
  const calls = names.map((functionName) => ({ target: feed, data: encodeFunctionData({ abi, functionName }) }));
  const uptime = { target: sequencer ?? feed, data: encodeFunctionData({ abi, functionName: "latestRoundData" }) };
  const [round, decimals, description, up] = await simulateCalls(at.rpc, { multicall: at.multicall }, [
    ...calls,
    ...(sequencer ? [uptime] : []),
  ]);
  try {
    const data = readRound(round);
    return {
      ...(sequencer ? { sequencer: toSequencerAnswer(readRound(up)) } : {}),
      answer: data[1],
      decimals: decodeFunctionResult({ abi, functionName: "decimals", data: dataOf(decimals) }),
      updatedAt: toTime(data[3]),
      description: cleanText(
        decodeFunctionResult({ abi, functionName: "description", data: dataOf(description) }),
        MAX_DESCRIPTION_LENGTH,
      ),
    };
  } catch (cause) {
    throw new ChainError("wrong_contract", { cause, detail: `${feed} is not a price feed` });
  }
}

type Round = readonly [bigint, bigint, bigint, bigint, bigint];

function readRound(outcome: CallOutcome | undefined): Round {
  return decodeFunctionResult({ abi, functionName: "latestRoundData", data: dataOf(outcome) });
}

/** An answer of 0 means up, 1 means down. A round that has not started does not count as up. */
function toSequencerAnswer([, answer, startedAt]: Round): SequencerState {
  return { isUp: answer === 0n && startedAt > 0n, since: toTime(startedAt) };
}

/** Converts Unix seconds. Throws RangeError for more than a Date can hold: an invalid Date breaks every comparison without an error. */
function toTime(seconds: bigint): Date {
  const time = new Date(Number(seconds) * 1_000);
  if (Number.isNaN(time.getTime())) throw new RangeError(`${seconds} is not a time`);
  return time;
}

function dataOf(outcome: CallOutcome | undefined): Hex {
  return outcome?.ok ? outcome.data : "0x";
}
