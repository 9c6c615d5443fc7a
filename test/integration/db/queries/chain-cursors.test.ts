import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import {
  advanceCursor,
  type Cursor,
  deleteBlocks,
  ensureCursor,
  findBaseFee,
  findBlock,
  insertBlocks,
  raiseFinal,
  releaseCursor,
  renewCursor,
  takeCursor,
} from "../../../../db/queries/chain-cursors.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const { db } = await openTestDb(20);
const now = new Date();
/** Longer than any test takes. */
const LEASE_MS = 600_000;

async function makeCursor() {
  const chain = `eip155:${Math.floor(Math.random() * 2 ** 48)}`;
  await ensureCursor(db, { chain, number: 10, blockId: "0xa", dueAt: now, assets: [] });
  const take = (owner: string) => takeCursor(db, { chain, owner, leaseMs: LEASE_MS });
  const mustTake = async (owner = "a"): Promise<Cursor> => {
    const cursor = await take(owner);
    if (!cursor) throw new Error("another owner holds the watch");
    return cursor;
  };
  /** Lets `ms` milliseconds of the lease pass. */
  const pass = (ms: number) =>
    sql`update chain_cursor set lease_until = lease_until - ${ms}::float8 * interval '1 millisecond'
      where chain = ${chain}`.execute(db);
  const takeAfter = async (owner: string, ms: number) => {
    await pass(ms);
    return mustTake(owner);
  };
  return { chain, take, mustTake, pass, takeAfter };
}
const to = (number: number, blockId: string) => ({ number, blockId, leaseMs: LEASE_MS });

describe("the watch lease of a chain", () => {
  test("one of twenty processes that ask for the watch at once gets it", async () => {
    const { take } = await makeCursor();
    const taken = await Promise.all(Array.from({ length: 20 }, (_, index) => take(`o${index}`)));
    expect(taken.filter(Boolean)).toHaveLength(1);
  });

  test("one of twenty jobs of the same process gets the watch", async () => {
    const { take } = await makeCursor();
    const taken = await Promise.all(Array.from({ length: 20 }, () => take("a")));
    expect(taken.filter(Boolean)).toHaveLength(1);
  });

  test("the watch passes to another owner when its lease expires or is released, and not earlier", async () => {
    const { take, mustTake, pass, takeAfter } = await makeCursor();
    const first = await mustTake("a");
    expect(first).toMatchObject({ number: 10, blockId: "0xa", finalNumber: 10 });
    await pass(LEASE_MS - 60_000);
    expect(await take("b")).toBeUndefined();
    const second = await takeAfter("b", 60_000);
    expect(second.fence).toBeGreaterThan(first.fence);
    await releaseCursor(db, second, {});
    expect(await take("a")).toBeDefined();
  });

  test("a renewal that arrives after the release does not take the watch again", async () => {
    const { mustTake, take } = await makeCursor();
    const first = await mustTake("a");
    await releaseCursor(db, first, {});
    await renewCursor(db, first, LEASE_MS);
    expect(await take("b")).toBeDefined();
  });

  test("an owner whose lease was taken over cannot move, extend or release the watch", async () => {
    const { take, mustTake, takeAfter } = await makeCursor();
    const old = await mustTake("a");
    const current = await takeAfter("b", LEASE_MS);
    expect(await advanceCursor(db, old, to(11, "0xb"))).toBe(false);
    await renewCursor(db, old, 10 * LEASE_MS);
    await releaseCursor(db, old, { reachedHeadAt: now });
    expect(await take("a"), "the old owner released nothing").toBeUndefined();
    expect(await takeAfter("a", LEASE_MS), "and extended nothing").toMatchObject({ number: 10, blockId: "0xa" });
    expect(await advanceCursor(db, current, to(11, "0xb"))).toBe(false);
  });

  test("the watch starts at the chain's head when it is first watched, and a restart does not change that", async () => {
    const { chain, mustTake, takeAfter } = await makeCursor();
    expect(await advanceCursor(db, await mustTake(), to(11, "0xb"))).toBe(true);
    expect(await ensureCursor(db, { chain, number: 99, blockId: "0xz", dueAt: now, assets: [] })).toBe(false);
    expect(await takeAfter("a", LEASE_MS)).toMatchObject({ number: 11, blockId: "0xb" });
  });
});

describe("the cursor", () => {
  test("the cursor moves once from the block it stands on, even in a race", async () => {
    const { mustTake, takeAfter } = await makeCursor();
    const cursor = await mustTake();
    const moved = await Promise.all(
      Array.from({ length: 10 }, (_, index) => advanceCursor(db, cursor, to(11, `0xb${index}`))),
    );
    expect(moved.filter(Boolean)).toHaveLength(1);
    expect(await takeAfter("a", LEASE_MS)).toMatchObject({ number: 11, blockId: `0xb${moved.indexOf(true)}` });
  });

  test("the cursor does not move from another block of the same height or from another height", async () => {
    const { mustTake } = await makeCursor();
    const cursor = await mustTake();
    expect(await advanceCursor(db, { ...cursor, blockId: "0xother" }, to(11, "0xb"))).toBe(false);
    expect(await advanceCursor(db, { ...cursor, number: 9 }, to(11, "0xb"))).toBe(false);
  });

  test("the cursor keeps the highest final block of its owner until a reorg removes that block", async () => {
    const { mustTake, takeAfter } = await makeCursor();
    const cursor = await mustTake();
    expect(await advanceCursor(db, cursor, to(20, "0xc"))).toBe(true);
    await raiseFinal(db, { ...cursor, finalNumber: 12 });
    await raiseFinal(db, { ...cursor, finalNumber: 11 });
    expect((await takeAfter("a", LEASE_MS)).finalNumber).toBe(12);
    await raiseFinal(db, { ...cursor, finalNumber: 20 });
    const retaken = await takeAfter("a", LEASE_MS);
    expect(retaken.finalNumber).toBe(12);
    expect(await advanceCursor(db, retaken, to(11, "0xd"))).toBe(true);
    expect((await takeAfter("a", LEASE_MS)).finalNumber).toBe(11);
  });
});

test("stored blocks are deleted above a reorg and below the oldest block needed, and can be stored again", async () => {
  const { chain } = await makeCursor();
  const block = (number: number, hash: string) => ({
    chain,
    number,
    hash,
    parent_hash: "0x",
    base_fee: BigInt(number),
    at: now,
  });
  await insertBlocks(
    db,
    [1, 2, 3, 4, 5].map((number) => block(number, `0x${number}`)),
  );
  await deleteBlocks(db, { chain, above: 4 });
  await deleteBlocks(db, { chain, below: 2 });
  const known = await Promise.all([1, 2, 3, 4, 5].map((number) => findBlock(db, { chain, number })));
  expect(known.map((found) => found?.hash)).toEqual([undefined, "0x2", "0x3", "0x4", undefined]);
  await insertBlocks(db, [block(4, "0x4b")]);
  expect((await findBlock(db, { chain, number: 4 }))?.hash).toBe("0x4b");
  expect(await findBaseFee(db, chain)).toBe(4n);
});
