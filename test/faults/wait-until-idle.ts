import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import type { ChainClient } from "../../local/chain-client.ts";
import { execute } from "../support/execute-sql.ts";

/** `open` lists the work that was still unfinished at the time limit; `last` lists the work that finished last. */
export type IdleResult = { ms: number; open: string[]; last: string[] };

/**
 * Selects all unfinished work. A nonce is finished when one of its transactions is final or can no longer land; after
 * lost commits, the final one may be unknown, and the known ones are replaced by it.
 */
const unfinished = (forgets: boolean) => `
  select 'payment ' || id || ' ' || state what, id payment_id from payment where state in ('requires_action', 'processing')
  union all select 'attempt ' || id || ' ' || state, payment_id from attempt where state = 'waiting'
  union all select 'transfer ' || id || ' ' || state || coalesce(': ' || last_error, ''), payment_id
    from transfer where state not in ('confirmed', 'ended')
  union all select 'settlement ' || id || ' ' || state, null from settlement where state <> 'paid'
  union all select 'lane ' || lane_id || ' nonce ' || nonce || ' is not final', null
    from transaction group by lane_id, nonce having not bool_or(state in (${forgets ? "'final', 'expired', 'replaced'" : "'final', 'expired'"}))`;

/** Selects the watchers that are not final at these heights yet, by chain. */
const behind = (heights: Record<string, number>) =>
  Object.entries(heights)
    .map(
      ([chain, height]) => `
  union all select 'the watcher of ' || chain || ' is final at ' || final_number || ' and not at ${height}', null
    from chain_cursor where chain = '${chain}' and final_number < ${height}`,
    )
    .join("");

/** Waits until all work is finished and every payout has arrived; payments in `except` may take longer. */
export async function waitUntilIdle(
  databaseUrl: string,
  args: { except: readonly string[]; forgets?: boolean; heights?: Record<string, number>; withinMs: number },
): Promise<IdleResult> {
  const { except, forgets = false, heights = {}, withinMs } = args;
  const begun = performance.now();
  let last: string[] = [];
  // A new connection for each poll would take more processor time than its statement.
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  pool.on("error", () => undefined);
  try {
    for (;;) {
      const { rows } = await pool.query<{ what: string; payment_id: string }>(unfinished(forgets) + behind(heights));
      const open = rows.filter(({ payment_id }) => !except.includes(payment_id)).map(({ what }) => what);
      const ms = performance.now() - begun;
      if (open.length === 0 || ms > withinMs) return { ms, open, last };
      last = open;
      await pause(100);
    }
  } finally {
    await pool.end();
  }
}

/** Returns by how many seconds the chain's clock must advance until every open authorization has expired. */
export async function secondsUntilExpiry(databaseUrl: string, client: ChainClient): Promise<number> {
  const [row] = await execute(
    databaseUrl,
    "select max(valid_before)::int as last from transfer where state in ('ready', 'assigned', 'awaited') and purpose = 'payment' and kind <> 'spl'",
  );
  const { timestamp } = await client.getBlock();
  return Math.max(0, Number(row?.["last"] ?? 0) - Number(timestamp)) + 1;
}
