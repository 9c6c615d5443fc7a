import { expect, test } from "vitest";
import { isAlive } from "../../../local/scratch-folder.ts";
import { supervise } from "../../../local/supervisor.ts";
import { builtService } from "../../support/built-service.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { redisPrefix } from "../../support/redis-prefix.ts";
import { createDatabase } from "../../support/test-database.ts";
import { testKeys } from "../../support/test-deps.ts";
import { waitFor } from "../../support/wait-for.ts";

test("a process that is killed is restarted, and none is left after the stop", async () => {
  const redis = redisPrefix();
  const env = {
    DATABASE_URL: await createDatabase(),
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    TOTP_PRIVATE_KEYS: testKeys.TOTP_PRIVATE_KEYS,
    LOG_LEVEL: "warn",
  };
  const deaths: string[] = [];
  const supervisor = await supervise({
    processes: [{ role: "bull-board", build: builtService, env }],
    onChange: () => undefined,
    onDeath: (role, how) => deaths.push(`${role} ${how}`),
  });
  addCleanup(() => supervisor.stop(1_000));
  const [first] = supervisor.pids("bull-board");
  if (first === undefined) throw new Error("nothing was started");

  process.kill(first, "SIGKILL");
  const second = await waitFor(() => supervisor.pids("bull-board").find((pid) => pid !== first), { within: 30_000 });
  expect(isAlive(second)).toBe(true);
  expect(deaths).toEqual(["bull-board SIGKILL"]);

  await supervisor.stop(10_000);
  expect(supervisor.pids("bull-board")).toEqual([]);
  expect(isAlive(second)).toBe(false);
});

test("a process that is restarted ends by itself and starts again, and does not count as dead", async () => {
  const redis = redisPrefix();
  const env = {
    DATABASE_URL: await createDatabase(),
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    TOTP_PRIVATE_KEYS: testKeys.TOTP_PRIVATE_KEYS,
    LOG_LEVEL: "warn",
  };
  const deaths: string[] = [];
  const supervisor = await supervise({
    processes: [{ role: "bull-board", build: builtService, env }],
    onChange: () => undefined,
    onDeath: (role, how) => deaths.push(`${role} ${how}`),
  });
  addCleanup(() => supervisor.stop(1_000));
  const [first = 0] = supervisor.pids("bull-board");

  await supervisor.restart(["api"], 10_000);
  expect(supervisor.pids("bull-board")).toEqual([first]);
  await supervisor.restart(["bull-board"], 10_000);
  expect(isAlive(first)).toBe(false);
  await waitFor(() => supervisor.pids("bull-board").find((pid) => pid !== first), { within: 30_000 });
  expect(deaths).toEqual([]);
});

test("a process that is held starts again when it is released, and a stop does not wait for that", async () => {
  const redis = redisPrefix();
  const env = {
    DATABASE_URL: await createDatabase(),
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    TOTP_PRIVATE_KEYS: testKeys.TOTP_PRIVATE_KEYS,
    LOG_LEVEL: "warn",
  };
  let changes = 0;
  const supervisor = await supervise({
    processes: [{ role: "bull-board", env }],
    onChange: () => (changes += 1),
    onDeath: () => undefined,
  });
  addCleanup(() => supervisor.stop(1_000));
  const [first = 0] = supervisor.pids("bull-board");

  const release = await supervisor.hold(["bull-board"], 10_000);
  expect(isAlive(first)).toBe(false);
  await waitFor(() => changes === 1, { within: 20_000 });
  expect(supervisor.pids("bull-board")).toEqual([]);
  release();
  await waitFor(() => supervisor.pids("bull-board").length === 1, { within: 30_000 });
  await supervisor.hold(["bull-board"], 10_000);
  await supervisor.stop(10_000);
  expect(supervisor.pids("bull-board")).toEqual([]);
});

test("a process that cannot start is named, with its last lines", async () => {
  const starting = supervise({
    processes: [{ role: "bull-board", build: builtService, env: { DATABASE_URL: "no address" } }],
    onChange: () => undefined,
    onDeath: () => undefined,
  });
  await expect(starting).rejects.toThrow(/bull-board ended instead of starting[\s\S]*DATABASE_URL/);
});
