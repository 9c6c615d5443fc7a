import { rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeScratch } from "../../local/scratch-folder.ts";
import { claimAllDeposits } from "../../payments/payouts/claim-all-deposits.ts";
import { createLog } from "../../runtime/log.ts";
import { createSignerClient } from "../../signer/client.ts";
import { createStore } from "../../signer/create-store.ts";
import { adminIn } from "./admin.ts";
import { addCleanup } from "./cleanups.ts";
import { runProgram } from "./run-program.ts";
import { spawnProcess } from "./spawn-process.ts";
import { testKeys } from "./test-deps.ts";
import { limitsDocument } from "./test-signer.ts";

type Db = Parameters<typeof claimAllDeposits>[0]["db"];

/** What a signer command printed, and its exit code. */
type Ran = { code: number; output: string };

/**
 * Starts a signer in a process of its own, whose store can be lost. `networks` has the paths of the networks file whose treasury
 * is lost and of that with the treasury that follows, and `env` the keys of both. `rebuildArgs` are arguments of each
 * `signer rebuild`.
 */
export async function startLosableSigner({
  networks,
  env,
  assets,
  rebuildArgs,
  limits = {},
}: {
  networks: { lost: string; next: string };
  env: Record<string, string>;
  assets: readonly string[];
  rebuildArgs: readonly string[];
  limits?: Parameters<typeof limitsDocument>[1];
}) {
  const folder = await makeScratch("losable-signer");
  const store = join(folder, "signer.sqlite");
  const socketPath = join(folder, "signer.sock");
  const limitsFile = join(folder, "limits.jsonc");
  await writeFile(limitsFile, JSON.stringify(limitsDocument(assets, limits)));
  const listen = `unix:${socketPath}`;
  const base = { ...env, SIGNER_LISTEN: listen, SIGNER_STORE: store, SIGNER_LIMITS_FILE: limitsFile };
  const start = (which: keyof typeof networks) =>
    spawnProcess({ role: "signer", env: { ...base, NETWORKS_FILE: networks[which] } });
  /** Runs a command of the signer with the networks file of the lost treasury. */
  const run = async (...args: string[]): Promise<Ran> => {
    const { code, stdout, stderr } = await runProgram("signer", args, { ...base, NETWORKS_FILE: networks.lost });
    return { code, output: stdout + stderr };
  };
  const connect = () => {
    const signer = createSignerClient({ socketPath }, { log: createLog({ level: "silent", role: "test" }) });
    addCleanup(() => signer.close());
    return signer;
  };
  createStore(store, { command: "init", at: new Date() }).close();
  const running = await start("lost");
  const rebuild = (...args: string[]) => run("rebuild", ...rebuildArgs, ...args);
  return {
    start,
    connect,
    rebuild,
    /** Kills the signer and deletes its file. Begins the rebuild. */
    lose: async (): Promise<Ran> => {
      await running.kill("SIGKILL");
      for (const file of [store, `${store}-wal`, `${store}-shm`]) rmSync(file, { force: true });
      return rebuild();
    },
    /** Claims all deposits for the signer of the lost treasury, which is stopped afterwards. `meanwhile` runs before that. */
    claim: async (db: Db, meanwhile: () => Promise<void> = async () => undefined) => {
      const rebuilding = await start("lost");
      await meanwhile();
      const claimed = await claimAllDeposits({ db, signer: connect() });
      await rebuilding.kill("SIGTERM");
      return claimed;
    },
    /** Runs `signer withdraw` with this file, as operators repeat it. */
    withdraw: async (document: unknown): Promise<Ran> => {
      const file = join(folder, "withdrawal.json");
      await writeFile(file, JSON.stringify(document));
      return run("withdraw", file);
    },
    /** Runs `admin payouts renew` with the networks file of the treasury that follows. */
    renew: async (databaseUrl: string) => {
      const admin = adminIn({
        DATABASE_URL: databaseUrl,
        ...testKeys,
        NETWORKS_FILE: networks.next,
        SIGNER: listen,
        OPERATOR: "anna",
      });
      const { code, stdout } = await admin("payouts", "renew", "--json");
      return { code, result: JSON.parse(stdout) as unknown };
    },
  };
}
