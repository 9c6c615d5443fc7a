import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { base58 } from "@scure/base";
import { describe, expect, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import type { Role } from "../../../local/service-process.ts";
import { createStore } from "../../../signer/create-store.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { networksFileFor, startChain } from "../../support/evm-chain.ts";
import { canReadMemory, findInProcess } from "../../support/process-memory.ts";
import { type SpawnedProcess, spawnProcess, spawnUnready } from "../../support/spawn-process.ts";
import { createDatabase } from "../../support/test-database.ts";
import { testKeys } from "../../support/test-deps.ts";
import { openQueues } from "../../support/test-queues.ts";
import { limitsDocument } from "../../support/test-signer.ts";
import { makeSolanaKeys, startTestSolana } from "../../support/test-solana.ts";

const [chain, solana] = await Promise.all([startChain(), startTestSolana()]);
const keys = { evm: chain.keys, solana: await makeSolanaKeys(solana) };
const [evmLane, solanaLane] = [keys.evm.lanes[0], keys.solana.lanes[0]];
if (!evmLane || !solanaLane) throw new Error("a chain has no lane");
const queues = await openQueues();
await queues.ready();
const databaseUrl = await createDatabase();
const db = openDb(databaseUrl, { max: 1 });
addCleanup(() => db.destroy());

/** Each key as its file has it. */
const files = {
  "evm-treasury": keys.evm.treasury.privateKey,
  "evm-lane": evmLane.privateKey,
  "solana-treasury": keys.solana.treasury.secretKey,
  "solana-lane": solanaLane.secretKey,
};

/** Each key as its file has it, and its bytes. */
const secrets = Object.fromEntries(
  Object.entries(files).flatMap(([name, text]) => {
    const bytes = text.startsWith("0x")
      ? Buffer.from(text.slice(2), "hex")
      : Buffer.from(base58.decode(text).subarray(0, 32));
    return [
      [`${name} as text`, Buffer.from(text.replace("0x", ""))],
      [`${name} as bytes`, bytes],
    ];
  }),
);

/** Returns the environment of a process whose networks file names key files in this folder. */
async function environment(folder: string): Promise<Record<string, string>> {
  const account = (name: keyof typeof files, { address }: { address: string }) => ({
    address,
    key: { file: join(folder, name) },
  });
  const NETWORKS_FILE = await networksFileFor(chain, {
    change: {
      treasury: account("evm-treasury", keys.evm.treasury),
      lanes: [account("evm-lane", evmLane ?? chain.keys.treasury)],
    },
    solana: {
      chain: solana,
      keys: keys.solana,
      change: {
        treasury: account("solana-treasury", keys.solana.treasury),
        lanes: [account("solana-lane", solanaLane ?? keys.solana.treasury)],
      },
    },
  });
  return {
    DATABASE_URL: databaseUrl,
    REDIS_URL: queues.url,
    REDIS_PREFIX: queues.prefix,
    NETWORKS_FILE,
    ...testKeys,
    SIGNER: "embedded",
    PUBLIC_URL: "http://127.0.0.1:9",
  };
}

const absent = await environment(await makeScratch("no-keys"));
const folder = await makeScratch("keys");
for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 });
const present = await environment(folder);

/** The processes that sign nothing. */
const keyless: [string, Role, string][] = [
  ["the api", "api", ""],
  ["bull-board", "bull-board", ""],
  ["a worker that delivers webhooks", "worker", "deliver-webhook,deliver-slow-webhook"],
  ["a worker that verifies signatures", "worker", "verify-signature,verify-contract-wallet"],
  [
    "a worker that reads histories, checks pages and the ledger, and sweeps",
    "worker",
    "read-history,check-pages,reconcile,sweep,expire-payment",
  ],
];

test.each(keyless)("%s starts without the file of any key", async (_what, role, WORKER_QUEUES) => {
  const started = await spawnProcess({ role, env: { ...absent, WORKER_QUEUES } });
  await started.kill("SIGKILL");
});

test.each([
  ["relays", "relay-transfers", "evm-lane"],
  ["pays out", "settle", "evm-treasury"],
  ["refunds", "refund", "evm-treasury"],
  ["sends on Solana", "submit-solana", "solana-"],
  ["watches chains", "watch-chain", "-lane"],
])(
  "a worker that %s ends when the file of a key is missing, and names the file",
  async (_what, WORKER_QUEUES, name) => {
    const started = await spawnUnready({ role: "worker", env: { ...absent, WORKER_QUEUES } });
    expect(await started.gone).toMatchObject({ code: 1 });
    expect(started.tail()).toMatch(new RegExp(`file \\S*${name}\\S*, which the networks file names, cannot be read`));
  },
);

/** What a process with this role needs besides, when the treasury's keys are in the signer. */
const socket = `unix:${join(folder, "signer.sock")}`;
const separate = {
  SIGNER: socket,
  SIGNER_LISTEN: socket,
  SIGNER_STORE: join(folder, "signer.sqlite"),
  SIGNER_LIMITS_FILE: join(folder, "limits.jsonc"),
};
createStore(separate.SIGNER_STORE, { command: "init", at: new Date() }).close();
await writeFile(separate.SIGNER_LIMITS_FILE, JSON.stringify(limitsDocument([chain.asset, solana.asset])));

describe.runIf(canReadMemory)("the memory and the environment of a process", () => {
  const inspect = async (role: Role, WORKER_QUEUES: string, more: Record<string, string> = {}): Promise<string[]> => {
    const started: SpawnedProcess = await spawnProcess({ role, env: { ...present, WORKER_QUEUES, ...more } });
    const found = await findInProcess(started.pid, secrets);
    await started.kill("SIGTERM");
    return [...new Set(found.map((name) => name.replace(/ as .*/, "")))];
  };

  test.each(keyless)("%s holds no key, although it could read the files", async (_what, role, served) => {
    expect(await inspect(role, served)).toEqual([]);
  });

  test.each([
    ["relays on EVM chains", "relay-transfers,deliver-webhook", ["evm-lane"]],
    ["pays out on EVM chains", "settle,refund", ["evm-treasury"]],
    ["sends on Solana", "submit-solana", ["solana-lane", "solana-treasury"]],
    ["serves all queues", "", ["evm-lane", "evm-treasury", "solana-lane", "solana-treasury"]],
  ])("a worker that %s holds the keys that it signs with and no other", async (_what, served, expected) => {
    expect(await inspect("worker", served)).toEqual(expected);
  });

  test("with a signer of its own, the signer holds the treasury's keys and a worker those of the lanes", async () => {
    expect(await inspect("signer", "", separate)).toEqual(["evm-treasury", "solana-treasury"]);
    expect(await inspect("worker", "", separate)).toEqual(["evm-lane", "solana-lane"]);
  });
});
