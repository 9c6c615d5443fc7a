import { Redis } from "ioredis";
import { Client } from "pg";
import type { StackFile } from "../../ops/local/stack-file.ts";

/** What the stack has done since it started, as its own metrics and its services count it. */
export type Counters = {
  rpcCalls: number;
  rpcByMethod: Record<string, number>;
  sqlStatements: number;
  commits: number;
  redisCommands: number;
};

/** Reads every counter once. Reading costs a few statements and commands itself, the same before and after. */
export async function readCounters(stack: StackFile): Promise<Counters> {
  const texts = await Promise.all(stack.metricsUrls.map(async (url) => (await fetch(url)).text()));
  const rpcByMethod: Record<string, number> = {};
  let sqlStatements = 0;
  for (const line of texts.flatMap((text) => text.split("\n"))) {
    const value = Number(line.slice(line.lastIndexOf(" ") + 1));
    const method = /^pay_rpc_calls_total\{.*method="([^"]+)"/.exec(line)?.[1];
    if (method) rpcByMethod[method] = (rpcByMethod[method] ?? 0) + value;
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

/** What was done between two readings. */
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

/** Transactions that wrote, or only read: Postgres counts both. */
async function readCommits(url: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    // A backend reports what it did when it is idle for a moment; this makes our own answer fresh.
    const { rows } = await client.query(
      "select pg_stat_clear_snapshot(), xact_commit::int as commits from pg_stat_database where datname = current_database()",
    );
    return rows[0].commits;
  } finally {
    await client.end();
  }
}

async function readRedisCommands(url: string): Promise<number> {
  const redis = new Redis(url);
  try {
    return Number(/total_commands_processed:(\d+)/.exec(await redis.info("stats"))?.[1] ?? 0);
  } finally {
    redis.disconnect();
  }
}
