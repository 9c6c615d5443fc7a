import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "pg";
import type { Hex } from "viem";
import type { StackFile } from "../../local/stack-file.ts";

/** What the ledger has booked: payments that succeeded, settlements that were paid, and deposits without a payment. */
export type Booked = { payments: number; payouts: number; deposits: number };

export type DowntimeLedger = ReturnType<typeof openDowntimeLedger>;

/** Opens the database of a stack, and reads what the bench waits for on one chain. */
export function openDowntimeLedger({ postgresUrl }: StackFile, chain: string) {
  const client = new Pool({ connectionString: postgresUrl, max: 2 });
  const count = async (text: string, values: unknown[] = [chain]): Promise<number> =>
    Number((await client.query(`select count(*) from ${text}`, values)).rows[0].count);
  return {
    close: () => client.end(),
    /** Returns true when the watcher has read and confirmed everything up to a height. */
    isReadUpTo: async (height: number) =>
      (await count("chain_cursor where chain = $1 and number >= $2 and final_number >= $2", [chain, height])) > 0,
    /** Returns how many transfers of a purpose are in broadcast transactions that no block includes. */
    countSent: (purpose: "payment" | "settlement") =>
      count(
        `transfer t join transaction x on x.lane_id = t.lane_id and x.nonce = t.lane_nonce
         where t.chain = $1 and t.purpose = $2 and t.state = 'assigned' and x.state = 'accepted'`,
        [chain, purpose],
      ),
    /** Returns the broadcast transactions that no block includes, in the order of their nonces. */
    listSent: async (): Promise<{ hash: Hex; bytes: Buffer }[]> =>
      (
        await client.query(
          "select hash, bytes from transaction where chain = $1 and state = 'accepted' order by nonce",
          [chain],
        )
      ).rows,
    /** Returns the natural key of a payment's first option. */
    findKey: async (paymentId: string): Promise<string> => {
      const text = "select authorization_nonce from payment_option where payment_id = $1 order by id limit 1";
      return (await client.query(text, [paymentId])).rows[0].authorization_nonce;
    },
    read: async (): Promise<Booked> => ({
      payments: await count("payment where state = 'succeeded'", []),
      payouts: await count("settlement where state = 'paid'", []),
      deposits: await count("observation where chain = $1 and transfer_id is null and booked"),
    }),
  };
}

/** Waits for a condition, for a limited time. */
export async function waitFor(what: string, withinMs: number, holds: () => Promise<boolean>): Promise<void> {
  for (const until = Date.now() + withinMs; Date.now() < until; await pause(50)) if (await holds()) return;
  throw new Error(`not within ${withinMs / 1_000} s: ${what}`);
}
