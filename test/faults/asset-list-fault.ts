import { writeFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { execute } from "../support/execute-sql.ts";
import type { Fault } from "./fault-scheduler.ts";
import type { Random } from "./seeded-random.ts";
import type { TestEnvironment } from "./test-environment.ts";

/** How long the fault waits until the asset has an unfinished transfer, milliseconds. */
const timeoutMs = 15_000;

/**
 * Removes an asset with unfinished transfers from the networks file and restarts every worker; after a while it puts
 * the asset back and restarts the workers again.
 */
export function assetRemovalFault(environment: TestEnvironment, asset: string, random: Random): Fault {
  const { networks, supervisor, postgres } = environment;
  const write = (leaveOut?: string) => {
    const document = {
      ...networks.document,
      chains: (networks.document["chains"] as { assets: { asset: string }[] }[]).map((chain) => ({
        ...chain,
        assets: chain.assets.filter((one) => one.asset !== leaveOut),
      })),
    };
    return writeFile(networks.file, JSON.stringify(document));
  };
  const restartAll = () => {
    for (const pid of supervisor.pids("worker")) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // The process has already exited.
      }
    }
  };
  const unfinished = `select 1 from transfer where asset = '${asset}' and state not in ('confirmed', 'ended') limit 1`;
  const run = async () => {
    const hasUnfinished = async () => (await execute(postgres.url, unfinished).catch(() => [])).length > 0;
    for (const until = Date.now() + timeoutMs; Date.now() < until && !(await hasUnfinished()); ) await pause(50);
    await write(asset);
    restartAll();
    await pause(random.between(4_000, 6_000));
    await write();
    restartAll();
  };
  return { name: "an asset is removed from the networks file", run };
}
