import { cpSync, readdirSync, statSync, symlinkSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { launchProcess, type ServiceProcess, waitReady } from "../../local/service-process.ts";
import { copyPackages } from "../../scripts/copy-packages.ts";
import { builtService } from "../support/built-service.ts";
import { addCleanup } from "../support/cleanups.ts";
import { keysOf, networksFileFor, startChain } from "../support/evm-chain.ts";
import { redisPrefix } from "../support/redis-prefix.ts";
import { createDatabase } from "../support/test-database.ts";
import { testKeys } from "../support/test-deps.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const chain = await startChain();

/** The folder /app of the image: the packages that a build loads, the build, and package.json. */
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "image-"));
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  copyPackages(root, folder);
  symlinkSync(join(root, "package.json"), join(folder, "package.json"));
  cpSync(builtService, join(folder, "dist"), { recursive: true });
});

test("the packages and programs of the image take at most 150 MB", () => {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => join(folder, path));
  const bytes = paths.map((path) => statSync(path)).reduce((sum, { size }) => sum + size, 0);
  expect(bytes).toBeGreaterThan(20_000_000);
  expect(bytes).toBeLessThan(150_000_000);
});

test("the api, workers and bull-board start with only the packages of the image", async () => {
  const redis = redisPrefix();
  const env = {
    DATABASE_URL: await createDatabase(),
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    NETWORKS_FILE: await networksFileFor(chain, {}),
    ...testKeys,
  };
  const more = { api: { PUBLIC_URL: "https://pay.example" }, worker: { ...keysOf(chain, {}), SIGNER: "embedded" } };
  const start = async (role: "api" | "worker" | "bull-board"): Promise<ServiceProcess> => {
    const own = role === "bull-board" ? {} : more[role];
    const started = await launchProcess({ role, build: join(folder, "dist"), env: { ...env, ...own } });
    addCleanup(() => started.kill("SIGKILL"));
    await waitReady(started);
    return started;
  };
  const [api, board] = await Promise.all([start("api"), start("bull-board"), start("worker")]);
  const statusOf = async (url: string) => (await fetch(url)).status;
  expect(await statusOf(`${api.url}/docs/static/index.css`)).toBe(200);
  expect(await statusOf(`${board.url}/login`)).toBe(200);
});
