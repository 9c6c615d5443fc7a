import { decodeFunctionResult, encodeFunctionData, type Hex, parseAbi } from "viem";
import { cleanText } from "../../ops/clean-text.ts";
import { ChainFault } from "../faults.ts";
import { type CallOutcome, simulateCalls } from "./multicall.ts";
import type { EvmChain } from "./open.ts";

/** Chainlink's AggregatorV3Interface, what we read of it. */
const abi = parseAbi([
  "function latestRoundData() view returns (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound)",
  "function decimals() view returns (uint8)",
  "function description() view returns (string)",
]);
const names = ["latestRoundData", "decimals", "description"] as const;

/**
 * What a price feed says: `answer` with so many decimals, as of a time, and what it calls itself ("EUR / USD"). `sequencer`
 * is what the chain's uptime feed says, where that was asked.
 */
export type FeedAnswer = {
  answer: bigint;
  decimals: number;
  updatedAt: Date;
  description: string;
  sequencer?: SequencerAnswer;
};
/** Whether a rollup's sequencer is up, and since when. The time is 1970 where the feed has not been told yet. */
export type SequencerAnswer = { isUp: boolean; since: Date };

/** Longest name of a feed that is kept, code points. */
const LONGEST_DESCRIPTION = 100;

/**
 * Asks a price feed, and the sequencer uptime feed where one is given; one eth_call. Throws ChainFault `wrong_contract` for
 * a contract that is none.
 */
export async function readFeed(chain: EvmChain, feed: Hex, sequencer?: Hex): Promise<FeedAnswer> {
  const calls = names.map((functionName) => ({ target: feed, data: encodeFunctionData({ abi, functionName }) }));
  const uptime = { target: sequencer ?? feed, data: encodeFunctionData({ abi, functionName: "latestRoundData" }) };
  const [round, decimals, description, up] = await simulateCalls(chain.rpc, chain, [
    ...calls,
    ...(sequencer ? [uptime] : []),
  ]);
  try {
    const data = readRound(round);
    return {
      ...(sequencer ? { sequencer: toSequencerAnswer(readRound(up)) } : {}),
      answer: data[1],
      decimals: decodeFunctionResult({ abi, functionName: "decimals", data: dataOf(decimals) }),
      updatedAt: new Date(Number(data[3]) * 1_000),
      description: cleanText(
        decodeFunctionResult({ abi, functionName: "description", data: dataOf(description) }),
        LONGEST_DESCRIPTION,
      ),
    };
  } catch (cause) {
    throw new ChainFault("wrong_contract", { cause, detail: `${feed} does not answer as a price feed does` });
  }
}

type Round = readonly [bigint, bigint, bigint, bigint, bigint];

function readRound(outcome: CallOutcome | undefined): Round {
  return decodeFunctionResult({ abi, functionName: "latestRoundData", data: dataOf(outcome) });
}

/** 0 is up and 1 is down; a round that has not started says nothing. */
function toSequencerAnswer([, answer, startedAt]: Round): SequencerAnswer {
  return { isUp: answer === 0n && startedAt > 0n, since: new Date(Number(startedAt) * 1_000) };
}

function dataOf(outcome: CallOutcome | undefined): Hex {
  return outcome?.ok ? outcome.data : "0x";
}
