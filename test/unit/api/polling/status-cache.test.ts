import { describe, expect, test, vi } from "vitest";
import { createStatusCache } from "../../../../api/polling/status-cache.ts";
import type { OwnedStatus } from "../../../../payments/lifecycle/read-payment.ts";
import type { Session } from "../../../../queues/payment-changes.ts";

const now = new Date("2026-06-01T00:00:00.000Z");
const ago = (ms: number) => new Date(now.getTime() - ms);
const owner = { mode: "test", account_id: "acct_1", merchant_id: "mrch_1" } as const;
const query = { paymentId: "pay_a", mode: "test" as const };

function owned(stateVersion: number, changedAt = ago(60_000)): OwnedStatus {
  const state = stateVersion === 0 ? "requires_action" : "processing";
  return {
    status: { paymentId: "pay_a", state, isFinal: false, stateVersion, changedAt, failureCode: null, info: null },
    owner,
  };
}

/** Creates a cache over a row, a subscription and a publisher that the test controls. */
function setUp() {
  const world = {
    row: owned(0),
    session: { isSession: true } as Session | undefined,
    isFollowed: true,
    /** Runs after the row was read and before the cache gets it. */
    duringRead: async (): Promise<void> => undefined,
  };
  const log: string[] = [];
  const read = async (paymentId: string) => {
    const row = { ...world.row, status: { ...world.row.status, paymentId } };
    log.push("read");
    await world.duringRead();
    return row;
  };
  const cache = createStatusCache({
    findOwnedStatus: read,
    listOwnedStatuses: (ids) => Promise.all(ids.map(read)),
    publishPaymentChanges: async (ids) => void log.push(`published ${ids.join(",")}`),
    isFollowed: () => world.isFollowed,
    catchUp: async () => world.session,
    current: () => world.session,
    now: () => now,
  });
  const find = async (paymentId = query.paymentId) => {
    const found = await cache.findStatus({ ...query, paymentId });
    return found.ok ? found.value.stateVersion : found.code;
  };
  /** Reads the status as a long poll does whose payment has changed. */
  const answer = async () => (await cache.readStatuses(["pay_a"])).map(({ stateVersion }) => stateVersion);
  return { world, log, cache, find, answer };
}

describe("the status cache", () => {
  test("reads a status once until its payment changes", async () => {
    const { world, log, cache, find } = setUp();
    expect([await find(), await find(), await find()]).toEqual([0, 0, 0]);
    expect(log).toEqual(["read"]);
    world.row = owned(1);
    cache.change("pay_a");
    expect([await find(), await find()]).toEqual([1, 1]);
    expect(log).toEqual(["read", "read"]);
  });

  test("does not keep a status whose payment changes while it is read", async () => {
    const { world, cache, find } = setUp();
    world.duringRead = async () => {
      world.row = owned(1);
      cache.announce("pay_a");
      world.duringRead = async () => undefined;
    };
    expect(await find()).toBe(0);
    expect(await find()).toBe(1);
  });

  test("keeps nothing across a lost connection, in which messages may have been lost", async () => {
    const { world, log, find } = setUp();
    await find();
    world.session = { isSession: true };
    await find();
    world.duringRead = async () => {
      world.session = { isSession: true };
    };
    world.session = { isSession: true };
    await find();
    world.duringRead = async () => undefined;
    await find();
    expect(log).toEqual(["read", "read", "read", "read"]);
  });

  test.each([
    ["Redis does not answer", { session: undefined }],
    ["unannounced changes are not found", { isFollowed: false }],
  ])("reads every status while %s", async (_, change) => {
    const { world, log, find, answer } = setUp();
    const usual = { ...world };
    Object.assign(world, change);
    await find();
    await find();
    await answer();
    Object.assign(world, usual);
    await find();
    expect(log).toEqual(["read", "read", "read", "read"]);
  });

  test("drops a status that no caller has requested for a minute", async () => {
    const { world, log, find } = setUp();
    const clock = vi.spyOn(performance, "now").mockReturnValue(1_000);
    world.row = owned(1, ago(1_000));
    await find();
    clock.mockReturnValue(60_000);
    await find();
    expect(log, "a kept status is no news").toEqual(["read", "published pay_a", "read"]);
    clock.mockReturnValue(121_000);
    await find("pay_b");
    await find();
    expect(log.slice(3)).toEqual(["read", "published pay_b", "read", "published pay_a"]);
    clock.mockRestore();
  });

  test("never returns an older status after a newer one", async () => {
    const { world, find } = setUp();
    const late = Promise.withResolvers<void>();
    world.duringRead = () => late.promise;
    const first = find();
    await new Promise(setImmediate);
    world.duringRead = async () => undefined;
    world.row = owned(1);
    expect(await find()).toBe(1);
    late.resolve();
    expect(await first).toBe(1);
    expect(await find()).toBe(1);
  });

  test("publishes a recent change that no message has announced before it returns it, and only once", async () => {
    const { world, log, find } = setUp();
    world.row = owned(1, ago(100));
    await find();
    await find();
    expect(log).toEqual(["read", "published pay_a"]);
  });

  test("publishes no change that was announced, that is old, or that is the creation", async () => {
    const announced = setUp();
    announced.world.row = owned(1, ago(100));
    announced.cache.announce("pay_a");
    await announced.find();
    const old = setUp();
    old.world.row = owned(1, ago(60_000));
    await old.find();
    const created = setUp();
    created.world.row = owned(0, ago(100));
    await created.find();
    for (const { log } of [announced, old, created]) expect(log).toEqual(["read"]);
  });

  test("publishes what a long poll is about to show", async () => {
    const { log, answer, world } = setUp();
    world.row = owned(1, ago(100));
    expect(await answer()).toEqual([1]);
    expect(log).toEqual(["read", "published pay_a"]);
  });

  test("does not read again what a long poll was answered with, until the payment changes", async () => {
    const { log, cache, find, answer, world } = setUp();
    world.row = owned(1);
    expect(await answer()).toEqual([1]);
    expect(await find()).toBe(1);
    expect(log).toEqual(["read"]);
    world.row = owned(2);
    cache.announce("pay_a");
    expect(await find()).toBe(2);
  });

  test.each([
    ["its payment changes meanwhile", ({ cache }: ReturnType<typeof setUp>) => cache.announce("pay_a")],
    [
      "the connection is lost meanwhile",
      ({ world }: ReturnType<typeof setUp>) => void Object.assign(world, { session: { isSession: true } }),
    ],
  ])("reads again what a long poll was answered with if %s", async (_, happen) => {
    const given = setUp();
    const { world, find, answer } = given;
    world.duringRead = async () => {
      world.row = owned(1);
      happen(given);
      world.duringRead = async () => undefined;
    };
    expect(await answer()).toEqual([0]);
    expect(await find()).toBe(1);
  });

  test("answers no long poll with an older status than one that was shown", async () => {
    const { world, find, answer } = setUp();
    const late = Promise.withResolvers<void>();
    world.duringRead = () => late.promise;
    const answered = answer();
    await new Promise(setImmediate);
    world.duringRead = async () => undefined;
    world.row = owned(1);
    expect(await find()).toBe(1);
    late.resolve();
    expect(await answered).toEqual([1]);
  });

  test("publishes what another route is about to show, once, and keeps no older status", async () => {
    const { log, cache, find, world } = setUp();
    await find();
    world.row = owned(1, ago(100));
    await cache.notify([world.row.status]);
    cache.announce("pay_a");
    expect(await find()).toBe(1);
    await cache.notify([world.row.status]);
    await cache.notify([owned(0).status]);
    expect(await find()).toBe(1);
    expect(log.filter((line) => line.startsWith("published"))).toHaveLength(1);
  });

  test("forgets what it has shown when the database was restored", async () => {
    const { world, cache, find } = setUp();
    world.row = owned(1);
    await find();
    world.row = owned(0);
    cache.forget();
    expect(await find()).toBe(0);
  });

  test("returns a status only to callers who may read the payment", async () => {
    const { cache, find } = setUp();
    await find();
    const others = [
      { ...query, mode: "live" },
      { ...query, merchant: { accountId: "acct_2", merchantId: "mrch_1" } },
      { ...query, merchant: { accountId: "acct_1", merchantId: "mrch_2" } },
      { ...query, onlyMerchants: ["mrch_2"] },
    ] as const;
    for (const other of others) expect(await cache.findStatus(other)).toMatchObject({ code: "payment_not_found" });
  });
});
