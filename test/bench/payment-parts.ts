import { Client } from "pg";
import { openHeadSocket } from "../../chains/evm/head-socket.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { percentile } from "./bench-stats.ts";

/** When a payment's confirm was sent and its final status arrived, Unix milliseconds. */
export type Timing = { paymentId: string; sentAt: number; endedAt: number };

/**
 * The parts of a payment, in order. request: until the api has stored the confirm. verify: until it is accepted. relay: until
 * the node has taken the transaction. inclusion: until the node announces the block. observation: until the watcher has
 * recorded it. booking: until the payment has succeeded. response: until the buyer's long poll has returned.
 */
const names = ["request", "verify", "relay", "inclusion", "observation", "booking", "response"] as const;

/** The times of a payment in the database and on the chain, Unix milliseconds. */
export type PaymentTimes = Timing & {
  confirmed: number;
  verified: number;
  relayed: number;
  /** When the node announced the block of the payment; undefined when it was not seen. */
  mined: number | undefined;
  recorded: number;
  booked: number;
  block: number;
};

/** Notes when the node announces each block. Call `close` at the end. */
export function noteBlocks(stack: StackFile): { times: Map<number, number>; close: () => void } {
  const times = new Map<number, number>();
  const url = stack.evm.rpcUrl.replace(/^http/, "ws");
  const onHeight = (height: number) => times.set(height, Date.now());
  return { times, close: openHeadSocket({ url, blockMs: 1_000, onHeight, onState: () => undefined }) };
}

/** Reads the times of paid payments. */
export async function readTimes(
  stack: StackFile,
  timings: readonly Timing[],
  blocks: ReadonlyMap<number, number>,
): Promise<PaymentTimes[]> {
  const client = new Client({ connectionString: stack.postgresUrl });
  await client.connect();
  try {
    const ms = (time: string) => `(extract(epoch from ${time}) * 1000)::float8`;
    const { rows } = await client.query(
      `select a.payment_id, ${ms("a.created_at")} as confirmed, ${ms("v.at")} as verified, ${ms("x.broadcast_at")} as relayed,
         ${ms("i.at")} as recorded, ${ms("p.at")} as booked, x.block_number::int as block
       from attempt a
       join event v on v.machine = 'attempt' and v.subject = a.id and v.to_state = 'verified'
       join transfer t on t.payment_id = a.payment_id
       join event i on i.machine = 'transfer' and i.subject = t.id and i.to_state = 'included'
       join event p on p.machine = 'payment' and p.subject = a.payment_id and p.to_state = 'succeeded'
       join transaction x on x.lane_id = t.lane_id and x.nonce = t.lane_nonce and x.block_number is not null
       where a.payment_id = any($1)`,
      [timings.map(({ paymentId }) => paymentId)],
    );
    const timingOf = new Map(timings.map((timing) => [timing.paymentId, timing]));
    return rows.flatMap(({ payment_id, ...times }) => {
      const timing = timingOf.get(payment_id);
      return timing ? [{ ...timing, ...times, mined: blocks.get(times.block) }] : [];
    });
  } finally {
    await client.end();
  }
}

/** Returns one line for each part of the payments: its median and 95th percentile. */
export function describeParts(all: readonly PaymentTimes[]): [string, string][] {
  const parts = all.flatMap(({ sentAt, confirmed, verified, relayed, mined, recorded, booked, endedAt }) => {
    // A node may announce the block before it has answered the broadcast.
    const inBlock = Math.max(relayed, mined ?? recorded);
    const times = [sentAt, confirmed, verified, relayed, inBlock, recorded, booked, endedAt];
    return [names.map((_, index) => (times[index + 1] ?? 0) - (times[index] ?? 0))];
  });
  return names.map((name, index) => {
    const of = parts.map((one) => one[index] ?? 0);
    return [`  ${name}`, `p50 ${percentile(of, 0.5).toFixed(0)} ms, p95 ${percentile(of, 0.95).toFixed(0)} ms`];
  });
}
