import { Client } from "pg";
import { onEachRedisNode } from "../../local/redis-nodes.ts";
import type { StackFile } from "../../local/stack-file.ts";

/** The counters of the stack since its start, from its own metrics, Postgres and Redis. */
export type Counters = {
  rpcCalls: number;
  rpcByMethod: Record<string, number>;
  sqlStatements: number;
  commits: number;
  redisCommands: number;
};

/**
 * Reads every counter once, of RPC calls those to one chain. The reading itself adds a few statements and commands, the same
 * before and after a run.
 */
export async function readCounters(stack: StackFile, chain: string): Promise<Counters> {
  const texts = await Promise.all(stack.metricsUrls.map(async (url) => (await fetch(url)).text()));
  const rpcByMethod: Record<string, number> = {};
  let sqlStatements = 0;
  for (const line of texts.flatMap((text) => text.split("\n"))) {
    const value = Number(line.slice(line.lastIndexOf(" ") + 1));
    const method = /^pay_rpc_calls_total\{.*method="([^"]+)"/.exec(line)?.[1];
    if (method && line.includes(`chain="${chain}"`)) rpcByMethod[method] = (rpcByMethod[method] ?? 0) + value;
    if (line.startsWith("pay_sql_statements_total")) sqlStatements += value;
  }
  return {
    rpcCalls: Object.values(rpcByMethod).reduce((sum, count) => sum + count, 0),
    rpcByMethod,
    sqlStatements,
    commits: await readCommits(stack.postgresUrl),
    redisCommands: await readRedisCommands(stack.redisUrl),
  };
}

/** Returns the difference between two readings. */
export function subtract(after: Counters, before: Counters): Counters {
  const methods = Object.entries(after.rpcByMethod).map(
    ([method, count]) => [method, count - (before.rpcByMethod[method] ?? 0)] as const,
  );
  return {
    rpcCalls: after.rpcCalls - before.rpcCalls,
    rpcByMethod: Object.fromEntries(methods.filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1])),
    sqlStatements: after.sqlStatements - before.sqlStatements,
    commits: after.commits - before.commits,
    redisCommands: after.redisCommands - before.redisCommands,
  };
}

/** Returns the number of committed transactions, including those that only read. */
async function readCommits(url: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    // Clear the snapshot of this connection: backends report their statistics when they become idle.
    const { rows } = await client.query(
      "select pg_stat_clear_snapshot(), xact_commit::int as commits from pg_stat_database where datname = current_database()",
    );
    return rows[0].commits;
  } finally {
    await client.end();
  }
}

async function readRedisCommands(url: string): Promise<number> {
  const infos = await onEachRedisNode(url, (node) => node.info("stats"));
  return infos.reduce((sum, info) => sum + Number(/total_commands_processed:(\d+)/.exec(info)?.[1] ?? 0), 0);
}
