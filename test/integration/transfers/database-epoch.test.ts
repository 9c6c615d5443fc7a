import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { readDatabaseStatus, readEpoch } from "../../../db/epoch.ts";
import { commitIfOk } from "../../../db/in-transaction.ts";
import { openDb } from "../../../db/open.ts";
import { createEpochStore } from "../../../queues/epoch-store.ts";
import { openRedis } from "../../../queues/redis-connections.ts";
import { createLog } from "../../../runtime/log.ts";
import { openEpoch } from "../../../transfers/database-epoch.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { redisPrefix } from "../../support/redis-prefix.ts";
import { copyDatabase, createDatabase } from "../../support/test-database.ts";

/** The epoch that a fleet stores in Redis; `forget` deletes it, as FLUSHALL does. */
function openMemory() {
  const { url, prefix } = redisPrefix();
  const redis = openRedis(url, () => undefined);
  addCleanup(() => redis.disconnect());
  const forget = () => redis.unlink(`${prefix}:database-epoch`);
  return { ...createEpochStore(redis, prefix), redis, forget };
}

/** A process that checks the epoch of a database. */
async function startProcess({
  url,
  memory = openMemory(),
}: {
  url?: string;
  memory?: ReturnType<typeof openMemory>;
} = {}) {
  const databaseUrl = url ?? (await createDatabase());
  const db = openDb(databaseUrl);
  addCleanup(() => db.destroy());
  if (memory.redis.status !== "ready") await once(memory.redis, "ready");
  const lines: string[] = [];
  const log = createLog({ level: "debug", role: "test" }, { write: (line) => void lines.push(line) });
  const epoch = openEpoch({ db, memory, log });
  const isStored = async (id: string) => {
    const passed = await commitIfOk(db, (tx) => epoch.pass(tx, id));
    if (passed.ok) await passed.afterCommit();
    return passed.ok;
  };
  return {
    databaseUrl,
    db,
    lines,
    memory,
    epoch,
    /** Runs a transaction that stores bytes signed in an epoch. Returns false when it was rolled back. */
    isStored,
    /** Commits such a transaction. */
    store: async (id: string) => expect(await isStored(id)).toBe(true),
    count: async () => (await readEpoch(db)).count,
    isSteppedBack: async () => (await readDatabaseStatus(db)).rewoundAt !== undefined,
    /** Rewinds the database by a number of commits. */
    rewind: (by: number) =>
      db
        .updateTable("database_epoch")
        .set((eb) => ({ count: eb("count", "-", by) }))
        .execute(),
  };
}

describe("the database's epoch", () => {
  test("the epoch stays the same while the count grows, and one process of a fleet counts each second", async () => {
    const one = await startProcess();
    const other = await startProcess({ url: one.databaseUrl, memory: one.memory });
    const id = await one.epoch.check();
    await one.db
      .updateTable("database_epoch")
      .set({ counted_at: new Date(0) })
      .execute();
    const began = performance.now();
    await Promise.all([one, other, one, other].map(({ epoch }) => epoch.tick()));
    const count = await one.count();
    expect(count).toBeGreaterThan(0);
    // A machine that needs longer than COUNT_EVERY_MS for the four may count again.
    expect(count).toBeLessThanOrEqual(1 + Math.floor((performance.now() - began) / 900));
    expect(await other.epoch.check()).toBe(id);
    expect(await one.isSteppedBack()).toBe(false);
  });

  test("a new epoch begins when a commit that this process has seen is missing, and it is logged once", async () => {
    const { epoch, store, rewind, lines, isSteppedBack, count } = await startProcess();
    const id = await epoch.check();
    for (let n = 0; n < 3; n += 1) await store(id);
    await rewind(1);
    const next = await epoch.check();
    expect(next).not.toBe(id);
    expect(await epoch.check()).toBe(next);
    expect(await isSteppedBack()).toBe(true);
    expect(await count()).toBeGreaterThan(3);
    expect(lines.filter((line) => line.includes("database lost commits"))).toHaveLength(1);
    await store(next);
  });

  test("a new epoch begins when another process of the fleet has seen more commits, also after all have restarted", async () => {
    const before = await startProcess();
    const id = await before.epoch.check();
    await before.db.destroy();
    const backup = await copyDatabase(before.databaseUrl);
    const running = await startProcess({ url: before.databaseUrl, memory: before.memory });
    await running.store(await running.epoch.check());
    const restored = await startProcess({ url: backup, memory: before.memory });
    expect(await restored.epoch.check()).not.toBe(id);
  });

  test("the epoch stays the same after Redis lost its data, which is not evidence of lost commits", async () => {
    const { epoch, store, memory, isSteppedBack, rewind } = await startProcess();
    const id = await epoch.check();
    await store(id);
    await memory.forget();
    expect(await epoch.check()).toBe(id);
    await store(id);
    expect(await memory.read()).toBe(2);
    expect(await isSteppedBack()).toBe(false);
    await memory.forget();
    await rewind(1);
    expect(await epoch.check()).not.toBe(id);
  });

  test("a new epoch begins on another database server, even when no process remembers the old one", async () => {
    const { epoch, db } = await startProcess();
    const id = await epoch.check();
    // A dump restored into another server, or a promoted replica, brings such a row.
    await db.updateTable("database_epoch").set({ identity: "7/00000001/1" }).execute();
    const next = await epoch.check();
    expect(next).not.toBe(id);
    expect(await epoch.check()).toBe(next);
    const { identity, live } = await readEpoch(db);
    expect(identity).toBe(live);
    expect(identity).toMatch(/^\d+\/\d{8}\/\d+$/);
  });

  test("commits count as lost since the last count before the step back, not since the first one after it", async () => {
    const { epoch, db } = await startProcess();
    await epoch.tick();
    const counted = new Date(Date.now() - 3_600_000);
    await db.updateTable("database_epoch").set({ identity: "7/00000001/1", counted_at: counted }).execute();
    await epoch.tick();
    const { lost_since } = await db.selectFrom("database_epoch").select("lost_since").executeTakeFirstOrThrow();
    expect(lost_since).toEqual(counted);
  });

  test("many processes that find the rewind at once begin one new epoch", async () => {
    const one = await startProcess();
    const id = await one.epoch.check();
    for (let n = 0; n < 5; n += 1) await one.store(id);
    const others = await Promise.all([1, 2, 3].map(() => startProcess({ url: one.databaseUrl, memory: one.memory })));
    await one.rewind(2);
    const all = [one, ...others];
    const found = await Promise.all(all.map(({ epoch }) => epoch.check()));
    expect(new Set(found).size).toBe(1);
    expect(found).not.toContain(id);
    expect(all.flatMap(({ lines }) => lines).filter((line) => line.includes("database lost commits"))).toHaveLength(1);
  });

  test("a process without Redis checks the epoch by the commits that it has seen itself", async () => {
    const { epoch, store, memory, rewind, isSteppedBack } = await startProcess();
    const id = await epoch.check();
    memory.redis.disconnect();
    await store(id);
    expect(await epoch.check()).toBe(id);
    expect(await isSteppedBack()).toBe(false);
    await rewind(1);
    expect(await epoch.check()).not.toBe(id);
  });

  test("the epoch stays the same in whatever order several processes check and store", async () => {
    const one = await startProcess();
    const all = [one, await startProcess({ url: one.databaseUrl, memory: one.memory })];
    const id = await one.epoch.check();
    // No more at once than the pool has connections: on a busy machine, others would wait too long for one.
    const work = all.flatMap(({ epoch, store }) =>
      Array.from({ length: 6 }, async () => {
        for (let n = 0; n < 10; n += 1) await (n % 3 === 0 ? store(id) : epoch.check());
      }),
    );
    await Promise.all(work);
    expect(await one.isSteppedBack()).toBe(false);
    expect(await one.count()).toBe(48);
  });
});

describe("a transaction that stores signed bytes", () => {
  test("a transaction that stores signed bytes is rolled back when the epoch of the decision to sign is over", async () => {
    const { epoch, store, rewind, db } = await startProcess();
    const id = await epoch.check();
    await store(id);
    await rewind(1);
    await epoch.check();
    const written = await commitIfOk(db, async (tx) => {
      await tx.insertInto("account").values({ id: "acc_1", name: "Shop", created_at: new Date() }).execute();
      return epoch.pass(tx, id);
    });
    expect(written).toEqual({ ok: false });
    expect(await db.selectFrom("account").selectAll().execute()).toEqual([]);
  });

  test("a transaction that stores signed bytes is rolled back when the database lost commits after the check", async () => {
    const { epoch, store, isStored, rewind, db } = await startProcess();
    const id = await epoch.check();
    await store(id);
    await rewind(1);
    expect(await isStored(id)).toBe(false);
    await rewind(-1);
    await store(id);
    await db.updateTable("database_epoch").set({ identity: "7/00000001/1" }).execute();
    expect(await isStored(id)).toBe(false);
  });

  test("a transaction that is rolled back for another reason does not count as a rewind, though its count is gone", async () => {
    const { epoch, db, isSteppedBack, store } = await startProcess();
    const id = await epoch.check();
    const undone = db.transaction().execute(async (tx) => {
      await epoch.pass(tx, id);
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
    expect(await epoch.check()).toBe(id);
    await store(id);
    expect(await isSteppedBack()).toBe(false);
  });
});
