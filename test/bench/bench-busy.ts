import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import type { Say } from "../../local/service.ts";
import type { Stack } from "../../local/stack.ts";
import { makeForeignTraffic } from "../support/foreign-traffic.ts";
import { withLimit } from "./bench-payments.ts";
import { printTable } from "./bench-stats.ts";
import type { Passed } from "./counting-proxy.ts";
import { readCpu } from "./cpu-time.ts";

/** Transfers of strangers in each busy block. */
const FOREIGN = 2_000;
/** The pace of blocks, the same in every part: a worker uses CPU time and polls the head without blocks as well. */
const BLOCK_MS = 1_500;
/** How much more a busy block may cost than a quiet one, because of the digits in its header. */
const MOST_MORE = 1.05;
/** CPU time is read in steps of 10 ms. */
const MOST_MORE_CPU = 1.25;

/** What one block cost. Polls of the head are apart, because they depend on the time and not on the block. */
type BlockCost = { calls: number; polls: number; bytes: number; cpuMs: number };

type Args = { proxy: { read(): Passed }; blocks: number; say: Say };

/**
 * Measures what the watcher receives, uses and asks per block: with empty blocks, with transfers of strangers in one
 * transaction per block, and with as many in a hundred transactions. Returns true if busy blocks cost what quiet ones do.
 */
export async function benchBusy(stack: Stack, { proxy, blocks, say }: Args): Promise<boolean> {
  const { client } = stack.chain;
  const makeTraffic = await makeForeignTraffic(stack.chain, 1_000_000_000n);
  await client.setAutomine(false);
  const database = new Client({ connectionString: stack.file().postgresUrl });
  await database.connect();
  /** Makes one block with transfers of strangers, and waits until the watcher has read it and has confirmed it. */
  const makeBlock = async (transactions: number): Promise<void> => {
    for (let made = 0; made < transactions; made += 1) await makeTraffic(FOREIGN / transactions);
    await client.mine({ blocks: 1 });
    const head = Number(await client.getBlockNumber());
    const read = "select from chain_cursor where chain = $1 and number >= $2 and final_number >= $2";
    for (const until = Date.now() + 60_000; Date.now() < until; await pause(10))
      if ((await database.query(read, [stack.chain.id, head])).rowCount) return;
    throw new Error(`the watcher has not read block ${head} within a minute`);
  };
  /** @param transactions of strangers in each block; no blocks are made when it is undefined */
  const measure = async (transactions: number | undefined): Promise<BlockCost> => {
    const make = async () => (transactions === undefined ? undefined : makeBlock(transactions));
    await make();
    const [before, cpu] = [proxy.read(), readCpu(stack.file())];
    for (let made = 0; made < blocks; made += 1) await Promise.all([make(), pause(BLOCK_MS)]);
    const [after, cpuAfter] = [proxy.read(), readCpu(stack.file())];
    const all = Object.entries(after.calls).map(
      ([method, count]) => [method, count - (before.calls[method] ?? 0)] as const,
    );
    const polls = all.find(([method]) => method === "eth_blockNumber")?.[1] ?? 0;
    const calls = all.reduce((sum, [, count]) => sum + count, 0) - polls;
    const seconds = (cpuAfter["workers"] ?? 0) - (cpu["workers"] ?? 0);
    const bytes = after.bytes - before.bytes - polls * POLL_BYTES;
    return { calls: calls / blocks, polls: polls / blocks, bytes: bytes / blocks, cpuMs: (seconds * 1_000) / blocks };
  };
  say(`${blocks} empty blocks, one every ${BLOCK_MS / 1_000} s`);
  const quiet = await measure(0);
  say(`${blocks} blocks with ${FOREIGN} transfers of strangers in one transaction`);
  const busy = await measure(1);
  say(`${blocks} blocks with ${FOREIGN} transfers of strangers in a hundred transactions`);
  const spread = await measure(100);
  say(`no blocks for ${(blocks * BLOCK_MS) / 1_000} s`);
  const idle = await measure(undefined);
  await database.end();
  const token = stack.chain.contracts.token;
  const { hash } = await client.getBlock();
  const logs = await client.getLogs({ address: token, blockHash: hash });
  const unfiltered = JSON.stringify(logs, (_, value) =>
    typeof value === "bigint" ? `0x${value.toString(16)}` : value,
  );
  const isSame = (one: BlockCost) => one.calls <= quiet.calls * MOST_MORE && one.cpuMs <= quiet.cpuMs * MOST_MORE_CPU;
  const isWithin = isSame(busy) && isSame(spread) && busy.bytes <= quiet.bytes * MOST_MORE;
  const line = ({ calls, bytes, cpuMs }: BlockCost) =>
    `${bytes.toFixed(0)} bytes, ${calls.toFixed(2)} calls, ${cpuMs.toFixed(0)} ms of CPU  `;
  const inOne = isSame(busy) && busy.bytes <= quiet.bytes * MOST_MORE;
  printTable([
    ["per block", `${blocks} blocks of each kind, one every ${BLOCK_MS / 1_000} s, one worker`],
    [
      "without blocks",
      `${idle.cpuMs.toFixed(0)} ms of CPU in ${BLOCK_MS / 1_000} s, ${idle.polls.toFixed(1)} polls of the head`,
    ],
    ["empty", line(quiet)],
    [`${FOREIGN} transfers in one transaction`, withLimit(line(busy), inOne, "at most 5 % more bytes")],
    [`${FOREIGN} in 100 transactions`, withLimit(line(spread), isSame(spread), "its header names each of them")],
    ["all its logs, not asked for", `${unfiltered.length} bytes`],
  ]);
  return isWithin;
}

/** Length of an answer to eth_blockNumber. */
const POLL_BYTES = JSON.stringify({ jsonrpc: "2.0", id: 1_000, result: "0x100" }).length;
