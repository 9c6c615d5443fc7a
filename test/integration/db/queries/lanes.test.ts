import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import {
  ensureLane,
  freeLane,
  type LaneLease,
  releaseLane,
  skipUsedNonces,
  takeLane,
  useNonce,
  wakeLanes,
} from "../../../../db/queries/lanes.ts";
import { insertLaneRow } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const { db } = await openTestDb(30);

/** A new chain with `count` lanes. */
async function makeLanes(count = 1) {
  const chain = `eip155:${Math.floor(Math.random() * 2 ** 48)}`;
  const lanes = await Promise.all(Array.from({ length: count }, () => insertLaneRow(db, chain)));
  const addresses = lanes.map(({ address }) => address);
  const take = (owner: string = randomUUID()) => takeLane(db, { chain, addresses, owner, leaseMs: 60_000 });
  /** Ends the leases as if their time had passed. */
  const endLeases = () =>
    sql`update lane set lease_until = clock_timestamp() where chain = ${chain} and owner is not null`.execute(db);
  return { chain, lanes, take, endLeases, requestWake: () => wakeLanes(db, { chain, addresses }) };
}
const mustTake = async (take: () => Promise<LaneLease | undefined>): Promise<LaneLease> => {
  const lease = await take();
  if (!lease) throw new Error("no lane was free");
  return lease;
};

describe("a lane", () => {
  test("a lane has one owner at a time: twenty racing owners get as many leases as there are lanes", async () => {
    const { take } = await makeLanes(3);
    const leases = (await Promise.all(Array.from({ length: 20 }, () => take()))).filter((lease) => lease !== undefined);
    expect(new Set(leases.map(({ id }) => id)).size).toBe(leases.length);
    expect(leases.length).toBeLessThanOrEqual(3);
    while (await take()) leases.push({} as LaneLease);
    expect(leases).toHaveLength(3);
  });

  test("the next owner takes a lane when the lease expires, and not earlier", async () => {
    const { take, endLeases } = await makeLanes();
    const first = await mustTake(take);
    expect(await take("next")).toBeUndefined();
    await endLeases();
    const second = await mustTake(() => take("next"));
    expect(second.fence).toBeGreaterThan(first.fence);
  });

  test("a process does not take a lane whose key it does not hold", async () => {
    const { chain } = await makeLanes();
    expect(await takeLane(db, { chain, addresses: ["0xother"], owner: "a", leaseMs: 1 })).toBeUndefined();
  });

  test("an existing lane keeps its nonce at a restart", async () => {
    const { chain, lanes, take } = await makeLanes();
    const lease = await mustTake(take);
    await useNonce(db, lease, { nonce: 0, leaseMs: 5_000 });
    await ensureLane(db, { id: lanes[0]?.id ?? "", chain, address: lanes[0]?.address ?? "", nextNonce: 0 });
    await freeLane(db, lease);
    expect((await mustTake(take)).next_nonce).toBe(1);
  });
});

describe("an owner with an old fence", () => {
  test("an owner with an old fence cannot use a nonce, release the lane or free it", async () => {
    const { take, requestWake, endLeases } = await makeLanes();
    const old = await mustTake(take);
    await endLeases();
    const current = await mustTake(() => take("next"));
    expect(await useNonce(db, old, { nonce: 0, leaseMs: 60_000 })).toBe(false);
    expect(await releaseLane(db, old)).toBe("lost");
    await freeLane(db, old);
    expect(await requestWake()).toBe(true);
    expect(await useNonce(db, current, { nonce: 0, leaseMs: 20_000 })).toBe(true);
  });
});

describe("a nonce", () => {
  test("a nonce is used once, even when many race for it", async () => {
    const { take } = await makeLanes();
    const lease = await mustTake(take);
    const used = await Promise.all(Array.from({ length: 20 }, () => useNonce(db, lease, { nonce: 0, leaseMs: 5_000 })));
    expect(used.filter(Boolean)).toHaveLength(1);
    expect(await useNonce(db, lease, { nonce: 2, leaseMs: 5_000 })).toBe(false);
  });

  test("nonces that the chain has passed are skipped, and none is ever returned", async () => {
    const { lanes, take } = await makeLanes();
    const laneId = lanes[0]?.id ?? "";
    await skipUsedNonces(db, { laneId, nextNonce: 7 });
    await skipUsedNonces(db, { laneId, nextNonce: 3 });
    expect((await mustTake(take)).next_nonce).toBe(7);
  });
});

describe("a wake request", () => {
  test("a wake request keeps the holder from releasing the lane once", async () => {
    const { take, requestWake } = await makeLanes();
    const lease = await mustTake(take);
    expect(await requestWake()).toBe(true);
    expect(await releaseLane(db, lease)).toBe("wake_requested");
    expect(await take(), "the lane is still held").toBeUndefined();
    expect(await releaseLane(db, lease)).toBe("released");
    expect(await requestWake(), "no owner holds it now").toBe(false);
  });

  test("a second request writes nothing while the first one waits for the holder", async () => {
    const { chain, take, requestWake } = await makeLanes();
    const version = async () =>
      (await sql<{ xmin: string }>`select xmin::text from lane where chain = ${chain}`.execute(db)).rows[0]?.xmin;
    const lease = await mustTake(take);
    expect(await requestWake()).toBe(true);
    const requested = await version();
    expect(await requestWake()).toBe(true);
    expect(await version()).toBe(requested);
    expect(await releaseLane(db, lease)).toBe("wake_requested");
  });

  test("no wake request is lost: the holder sees it, or the requester takes the lane", async () => {
    const { take, requestWake } = await makeLanes();
    let written = 0;
    let seen = 0;
    let holders = 0;
    const hold = async (lease: LaneLease): Promise<void> => {
      holders += 1;
      expect(holders, "one holder at a time").toBe(1);
      for (;;) {
        seen = written;
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
        // The holder is counted down before the lane is free, because another holder may take it at once.
        holders -= 1;
        if ((await releaseLane(db, lease)) !== "wake_requested") return;
        holders += 1;
      }
    };
    const work = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 6));
      written += 1;
      for (;;) {
        const lease = await take();
        if (lease) return hold(lease);
        if (await requestWake()) return;
      }
    };
    for (let burst = 0; burst < 40; burst += 1) {
      await Promise.all(Array.from({ length: 12 }, work));
      // All have returned, so some holder has checked after the last piece of work was written.
      expect(seen, `burst ${burst}`).toBe(written);
    }
    expect(await take(), "the lane is free in the end").toBeDefined();
  });
});
