import { setTimeout as pause } from "node:timers/promises";
import type { ChainClient } from "../../ops/local/chain-client.ts";
import { execute } from "../support/sql.ts";

/** `open` is what was still unfinished when patience ended; `last` is what took longest. */
export type Quiet = { ms: number; open: string[]; last: string[] };

/**
 * Everything that has not come to its end. Transactions end when one of their nonce is final, or can land no more; where
 * the database has stepped back, the one that is final may be forgotten, and those that are known are replaced by it.
 */
const unfinished = (forgets: boolean) => `
  select 'payment ' || id || ' ' || state what, id payment_id from payment where state in ('requires_action', 'processing')
  union all select 'attempt ' || id || ' ' || state, payment_id from attempt where state = 'waiting'
  union all select 'transfer ' || id || ' ' || state || coalesce(': ' || last_trouble, ''), payment_id
    from transfer where state not in ('confirmed', 'ended')
  union all select 'settlement ' || id || ' ' || state, null from settlement where state <> 'paid'
  union all select 'lane ' || lane_id || ' nonce ' || nonce || ' is not final', null
    from transaction group by lane_id, nonce having not bool_or(state in (${forgets ? "'final', 'expired', 'replaced'" : "'final', 'expired'"}))`;

/** Watchers that have not come beyond these heights yet, by chain. */
const behind = (heights: Record<string, number>) =>
  Object.entries(heights)
    .map(
      ([chain, height]) => `
  union all select 'the watcher of ' || chain || ' is final at ' || final_number || ' and not at ${height}', null
    from chain_cursor where chain = '${chain}' and final_number < ${height}`,
    )
    .join("");

/** Waits until everything has its end and every payout has arrived; payments in `except` may take longer. */
export async function waitQuiet(
  databaseUrl: string,
  args: { except: readonly string[]; forgets?: boolean; heights?: Record<string, number>; withinMs: number },
): Promise<Quiet> {
  const { except, forgets = false, heights = {}, withinMs } = args;
  const begun = performance.now();
  let last: string[] = [];
  for (;;) {
    const rows = await execute(databaseUrl, unfinished(forgets) + behind(heights));
    const open = rows.filter((row) => !except.includes(String(row.payment_id))).map((row) => String(row.what));
    const ms = performance.now() - begun;
    if (open.length === 0 || ms > withinMs) return { ms, open, last };
    last = open;
    await pause(100);
  }
}

/** How far the chain's clock has to go until no open authorization can be used any more. */
export async function secondsToOutlive(databaseUrl: string, client: ChainClient): Promise<number> {
  const [row] = await execute(
    databaseUrl,
    "select max(valid_before)::int as last from transfer where state in ('ready', 'carried', 'awaited') and purpose = 'payment' and kind <> 'spl'",
  );
  const { timestamp } = await client.getBlock();
  return Math.max(0, Number(row?.last ?? 0) - Number(timestamp)) + 1;
}
