import { describe, expect, test } from "vitest";
import {
  advanceCursor,
  ensureCursor,
  findBaseFee,
  findBlock,
  forgetBlocks,
  insertBlocks,
  raiseFinal,
  releaseCursor,
  takeCursor,
} from "../../../db/cursors.ts";
import { openTestDb } from "../../support/open-db.ts";

const { db } = await openTestDb(20);
const now = new Date();
const later = (ms: number) => new Date(now.getTime() + ms);

async function makeCursor() {
  const chain = `eip155:${Math.floor(Math.random() * 2 ** 48)}`;
  await ensureCursor(db, { chain, number: 10, hash: "0xa", dueAt: now });
  const take = (owner: string, at = now) =>
    takeCursor(db, { chain, owner, now: at, until: new Date(at.getTime() + 3_000) });
  const advance = (from: [number, string], to: [number, string]) =>
    advanceCursor(db, {
      chain,
      from: { number: from[0], hash: from[1] },
      to: { number: to[0], hash: to[1] },
      until: later(3_000),
    });
  return { chain, take, advance };
}

describe("the watch over a chain", () => {
  test("is one process's, though twenty ask for it at once", async () => {
    const { take } = await makeCursor();
    const taken = await Promise.all(Array.from({ length: 20 }, (_, index) => take(`o${index}`)));
    expect(taken.filter(Boolean)).toHaveLength(1);
  });

  test("stays with its owner, who may take it again, and goes to another when its time is up or it was given back", async () => {
    const { chain, take } = await makeCursor();
    expect(await take("a")).toMatchObject({ number: 10, hash: "0xa", finalNumber: 10 });
    expect(await take("a")).toBeDefined();
    expect(await take("b", later(2_999))).toBeUndefined();
    expect(await take("b", later(3_000))).toBeDefined();
    await releaseCursor(db, { chain, owner: "a", reachedHeadAt: undefined });
    expect(await take("a", later(3_001)), "an overtaken owner gives back nothing").toBeUndefined();
    await releaseCursor(db, { chain, owner: "b", reachedHeadAt: undefined });
    expect(await take("a", later(3_001))).toBeDefined();
  });

  test("begins where the chain was when it was first watched, and a restart changes nothing", async () => {
    const { chain, take, advance } = await makeCursor();
    await advance([10, "0xa"], [11, "0xb"]);
    expect(await ensureCursor(db, { chain, number: 99, hash: "0xz", dueAt: now })).toBe(false);
    expect(await take("a", later(3_000))).toMatchObject({ number: 11, hash: "0xb" });
  });
});

describe("the cursor", () => {
  test("moves from the block it stands on, once, whoever races", async () => {
    const { take, advance } = await makeCursor();
    const moved = await Promise.all(
      Array.from({ length: 10 }, (_, index) => advance([10, "0xa"], [11, `0xb${index}`])),
    );
    expect(moved.filter(Boolean)).toHaveLength(1);
    expect(await take("a", later(3_000))).toMatchObject({ number: 11, hash: `0xb${moved.indexOf(true)}` });
  });

  test("does not move from another block of the same height, nor from another height", async () => {
    const { advance } = await makeCursor();
    expect(await advance([10, "0xother"], [11, "0xb"])).toBe(false);
    expect(await advance([9, "0xa"], [11, "0xb"])).toBe(false);
  });

  test("never takes back what was called final", async () => {
    const { chain, take } = await makeCursor();
    await raiseFinal(db, { chain, finalNumber: 12 });
    await raiseFinal(db, { chain, finalNumber: 11 });
    expect((await take("a"))?.finalNumber).toBe(12);
  });
});

test("remembered blocks are forgotten above a reorg and below what anybody asks for, and read anew", async () => {
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
  await forgetBlocks(db, { chain, above: 4 });
  await forgetBlocks(db, { chain, below: 2 });
  const known = await Promise.all([1, 2, 3, 4, 5].map((number) => findBlock(db, { chain, number })));
  expect(known.map((found) => found?.hash)).toEqual([undefined, "0x2", "0x3", "0x4", undefined]);
  await insertBlocks(db, [block(4, "0x4b")]);
  expect((await findBlock(db, { chain, number: 4 }))?.hash).toBe("0x4b");
  expect(await findBaseFee(db, chain)).toBe(4n);
});
