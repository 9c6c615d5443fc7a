import { setTimeout as pause } from "node:timers/promises";
import { execute } from "../../local/execute-sql.ts";
import type { Say } from "../../local/service.ts";
import type { Stack } from "../../local/stack.ts";
import type { FaultProxy } from "../support/fault-proxy.ts";

/** One incident: when it begins and ends, as shares of the run, and how it is caused. `begin` returns what ends it. */
type Incident = { what: string; from: number; to: number; begin: () => Promise<() => unknown> };

/** Causes incidents that an operator sees on the dashboards, one after the other, within `seconds`. */
export async function causeIncidents(args: {
  stack: Stack;
  second: FaultProxy;
  seconds: number;
  say: Say;
}): Promise<void> {
  const began = Date.now();
  const until = (share: number) => pause(Math.max(0, began + share * args.seconds * 1_000 - Date.now()));
  for (const { what, from, to, begin } of listIncidents(args)) {
    await until(from);
    args.say(what);
    const end = await begin();
    await until(to);
    await end();
  }
}

function listIncidents({ stack, second }: { stack: Stack; second: FaultProxy }): Incident[] {
  const { live, processes } = stack.file();
  const holdMerchant = (at: string) =>
    execute(stack.postgres.url, `update merchant set payouts_held_at = ${at} where id = '${live.merchantId}'`);
  const onReplica = (statement: string) => execute(stack.replica?.url ?? "", statement);
  return [
    {
      what: "the second endpoint is slow",
      from: 0.2,
      to: 0.35,
      begin: async () => {
        second.delay(700);
        return () => second.delay(0);
      },
    },
    {
      what: "payouts of the merchant are held",
      from: 0.4,
      to: 0.55,
      begin: async () => {
        await holdMerchant("now()");
        return () => holdMerchant("null");
      },
    },
    {
      what: "the replica replays nothing",
      from: 0.6,
      to: 0.7,
      begin: async () => {
        await onReplica("select pg_wal_replay_pause()");
        return () => onReplica("select pg_wal_replay_resume()");
      },
    },
    {
      what: "a worker is killed",
      from: 0.75,
      to: 0.75,
      begin: async () => {
        const [worker] = processes.workers;
        if (worker !== undefined) process.kill(worker, "SIGKILL");
        return () => undefined;
      },
    },
    {
      what: "the second endpoint does not answer",
      from: 0.85,
      to: 0.9,
      begin: async () => {
        second.refuse(true);
        return () => second.refuse(false);
      },
    },
  ];
}
