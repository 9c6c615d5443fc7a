import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { claimReady, listClaimable } from "../../../../db/queries/claim-transfers.ts";
import { freeLane, type LaneLease, releaseLane, takeLane, wakeEnoughLanes } from "../../../../db/queries/lanes.ts";
import { insertRefund } from "../../../../db/queries/refunds.ts";
import {
  assignTransfers,
  holdTransfer,
  separateTransfers,
  unassignTransfers,
} from "../../../../db/queries/transfers.ts";
import { newId } from "../../../../payments/ids.ts";
import { insertLaneRow, insertMerchant, insertSettlementRow, insertTransferRow } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const { db } = await openTestDb(20);
const merchant = await insertMerchant(db);
const now = new Date();
const later = (ms: number) => new Date(now.getTime() + ms);

/** A new chain with lanes and ready transfers, oldest first. */
async function makeChain(lanes: number, transfers: number) {
  const chain = `eip155:${Math.floor(Math.random() * 2 ** 48)}`;
  const held = [];
  for (let index = 0; index < lanes; index += 1) {
    const { address } = await insertLaneRow(db, chain);
    const lease = await takeLane(db, { chain, addresses: [address], owner: `o${index}`, leaseMs: 60_000 });
    if (!lease) throw new Error("no lane");
    held.push(lease);
  }
  const asset = `${chain}/erc20:0x${"a1".repeat(20)}`;
  const ids: string[] = [];
  for (let index = 0; index < transfers; index += 1)
    ids.push((await insertTransferRow(db, merchant, { asset }, later(index))).id);
  const claim = (laneId: string, limit = 100, at = now) =>
    claimReady(db, { chain, laneId, kinds: ["eip3009"], now: at, limit, mostInclusions: 3 }).then((rows) =>
      rows.map(({ id }) => id),
    );
  return { chain, lanes: held, ids, claim };
}

/** Turns transfers of payments into payouts. */
async function makePayouts(ids: readonly string[]): Promise<void> {
  const paid = await insertMerchant(db);
  for (const [index, id] of ids.entries()) {
    const settlement_id = await insertSettlementRow(db, paid, { number: index + 1 });
    await db
      .updateTable("transfer")
      .set({ purpose: "settlement", payment_id: null, settlement_id })
      .where("id", "=", id)
      .execute();
  }
}

/** Turns transfers of payments into refunds of these payments. */
async function makeRefunds(ids: readonly string[]): Promise<void> {
  const rows = await db.selectFrom("transfer").select(["id", "payment_id"]).where("id", "in", ids).execute();
  for (const { id, payment_id } of rows) {
    const refund_id = newId("rfnd", now);
    await insertRefund(db, {
      ...{ id: refund_id, payment_id, number: 1, exception_id: null, merchant_id: null, asset: "eip155:1/erc20:0x01" },
      ...{
        amount: 1n,
        owed_asset: null,
        owed_amount: null,
        receiver: null,
        state: "marked",
        created_at: now,
        due_at: null,
      },
    });
    await db
      .updateTable("transfer")
      .set({ purpose: "refund", payment_id: null, refund_id })
      .where("id", "=", id)
      .execute();
  }
}

const readCalls = (ids: readonly string[]) =>
  db.selectFrom("transfer").select(["id", "payer", "receiver", "amount", "signature"]).where("id", "in", ids).execute();

describe("assigning transfers to a lane", () => {
  test("a lane is assigned the oldest transfers first", async () => {
    const { lanes, ids, claim } = await makeChain(1, 7);
    expect(await claim(lanes[0]?.id ?? "", 4)).toEqual(ids.slice(0, 4));
  });

  test("no transfer is assigned to two lanes that race", async () => {
    const { lanes, ids, claim } = await makeChain(4, 40);
    const given = await Promise.all(lanes.map(({ id }) => claim(id, 10)));
    const all = given.flat();
    expect(new Set(all).size).toBe(all.length);
    for (const { id } of lanes) all.push(...(await claim(id, 100)));
    expect(new Set(all)).toEqual(new Set(ids));
    // A lane that claims again gets its own transfers and none of another lane's.
    for (const [index, { id }] of lanes.entries())
      for (const [other, rows] of given.entries())
        if (other !== index) for (const row of rows) expect(await claim(id)).not.toContain(row);
  });

  test("transfers are free again when their lane is released or its lease expires", async () => {
    const { lanes, ids, claim } = await makeChain(3, 2);
    const [first, second, third] = lanes.map(({ id }) => id);
    expect(await claim(first ?? "")).toEqual(ids);
    expect(await claim(second ?? "")).toEqual([]);
    if (lanes[0]) await freeLane(db, lanes[0]);
    expect(await claim(second ?? "")).toEqual(ids);
    expect(await claim(third ?? "")).toEqual([]);
    await sql`update lane set lease_until = clock_timestamp() where id = ${second}`.execute(db);
    expect(await claim(third ?? "")).toEqual(ids);
  });

  test("a lane is not assigned a held transfer until its wait is over", async () => {
    const { lanes, ids, claim } = await makeChain(1, 2);
    const lane = lanes[0]?.id ?? "";
    await holdTransfer(db, { id: ids[0] ?? "", error: "balance", now });
    expect(await claim(lane)).toEqual([ids[1]]);
    expect(await claim(lane, 100, later(2_000))).toEqual(ids.toReversed());
  });

  test("the transfers of a payer wait for the one in flight once one of them has failed, and those of others do not", async () => {
    const { lanes, ids, claim } = await makeChain(1, 4);
    const lane = lanes[0]?.id ?? "";
    const [sent = "", failed = "", next = "", other = ""] = ids;
    await db.updateTable("transfer").set({ payer: "0xa1" }).where("id", "in", [sent, failed, next]).execute();
    await assignTransfers(db, { calls: await readCalls([sent]), laneId: lane, nonce: 0, at: now });
    expect(await claim(lane)).toEqual([failed, next, other]);
    await holdTransfer(db, { id: failed, error: "balance", now });
    expect(await claim(lane, 100, later(2_000))).toEqual([other]);
    await db.updateTable("transfer").set({ state: "included" }).where("id", "=", sent).execute();
    expect(await claim(lane, 100, later(2_000))).toEqual([next, other, failed]);
  });

  test("a payer's newer transfers wait for one that failed beside others, once its wait is over, and those of others do not", async () => {
    const { lanes, ids, claim } = await makeChain(1, 4);
    const lane = lanes[0]?.id ?? "";
    const [separated = "", next = "", last = "", other = ""] = ids;
    await db.updateTable("transfer").set({ payer: "0xa2" }).where("id", "in", [separated, next, last]).execute();
    await separateTransfers(db, { ids: [separated], error: "beside another one", now });
    expect(await claim(lane)).toEqual([next, last, other]);
    expect(await claim(lane, 100, later(2_000))).toEqual([other, separated]);
    await holdTransfer(db, { id: separated, error: "balance", now: later(2_000) });
    expect(await claim(lane, 100, later(2_000))).toEqual([next, last, other]);
  });

  test.each([
    ["payments", async () => undefined],
    ["payouts", (ids: readonly string[]) => makePayouts(ids)],
  ])("%s that have failed do not keep a newer payment out of a batch", async (_what, change) => {
    const { chain, lanes, ids, claim } = await makeChain(1, 9);
    await change(ids.slice(0, 8));
    const lane = lanes[0]?.id ?? "";
    for (const id of ids.slice(0, 8)) await holdTransfer(db, { id, error: "balance", now });
    const after = later(60_000);
    const [newest] = ids.slice(8);
    const listed = { chain, laneId: lane, kinds: ["eip3009"] as const, now: after, limit: 4, mostInclusions: 3 };
    const inOrder = [newest, ...ids.slice(0, 3)];
    expect((await listClaimable(db, listed)).map(({ id }) => id)).toEqual(inOrder);
    expect(await claim(lane, 4, after)).toEqual(inOrder);
  });
});

test("a merchant's older refunds do not keep buyers' payments and other merchants' payouts out of a batch", async () => {
  const { chain, lanes, ids, claim } = await makeChain(1, 9);
  await makeRefunds(ids.slice(0, 6));
  await makePayouts(ids.slice(7, 8));
  const lane = lanes[0]?.id ?? "";
  const listed = { chain, laneId: lane, kinds: ["eip3009"] as const, now, limit: 4, mostInclusions: 3 };
  const inOrder = [...ids.slice(6), ids[0]];
  expect((await listClaimable(db, listed)).map(({ id }) => id)).toEqual(inOrder);
  expect(await claim(lane, 4)).toEqual(inOrder);
  // A transfer that has failed comes after them all the same.
  await holdTransfer(db, { id: ids[6] ?? "", error: "balance", now });
  expect(await claim(lane, 9, later(60_000))).toEqual([...ids.slice(7), ...ids.slice(0, 7)]);
});

describe("a held transfer", () => {
  test("a transfer waits longer after each error, up to a minute, and is due when its wait is over", async () => {
    const { ids } = await makeChain(0, 1);
    const waits: number[] = [];
    for (let round = 0; round < 9; round += 1) {
      await holdTransfer(db, { id: ids[0] ?? "", error: "balance", now });
      const row = await db
        .selectFrom("transfer")
        .selectAll()
        .where("id", "=", ids[0] ?? "")
        .executeTakeFirstOrThrow();
      expect(row.due_at).toEqual(row.hold_until);
      waits.push(((row.hold_until as Date).getTime() - now.getTime()) / 1000);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });
});

describe("storing an assignment", () => {
  test("a transfer is assigned once, only to the lane that claimed it, and a lane that lost it assigns nothing", async () => {
    const { lanes, ids, claim } = await makeChain(2, 3);
    const [mine, other] = lanes.map(({ id }) => id) as [string, string];
    await claim(mine);
    const calls = await readCalls(ids);
    const assign = (laneId: string) => assignTransfers(db, { calls, laneId, nonce: 0, at: now });
    expect(await assign(other)).toEqual([]);
    const assigned = await Promise.all([assign(mine), assign(mine), assign(mine)]);
    expect(assigned.flat().sort()).toEqual(ids.toSorted());
  });

  test("two lanes that take the same transfer without a reservation race, and one of them assigns it", async () => {
    const { lanes, ids, chain } = await makeChain(2, 1);
    const found = lanes.map(({ id: laneId }) =>
      listClaimable(db, { chain, laneId, kinds: ["eip3009"], now: later(60_000), limit: 10, mostInclusions: 3 }),
    );
    expect((await Promise.all(found)).map((rows) => rows.map(({ id }) => id))).toEqual([ids, ids]);
    const calls = await readCalls(ids);
    const assigned = lanes.map(({ id: laneId }) => assignTransfers(db, { calls, laneId, nonce: 0, at: now }));
    expect((await Promise.all(assigned)).flat()).toEqual(ids);
  });

  test.each([
    ["its receiver and signature", { receiver: `0x${"b2".repeat(20)}`, signature: Buffer.alloc(65, 1) }],
    ["its amount", { amount: 9n }],
    ["its payer and signature", { payer: `0x${"b2".repeat(20)}`, signature: null }],
  ])("a transfer is not assigned to the transaction that was signed before %s changed", async (_what, change) => {
    const { lanes, ids } = await makeChain(1, 2);
    const laneId = lanes[0]?.id ?? "";
    const signed = await readCalls(ids);
    await db
      .updateTable("transfer")
      .set(change)
      .where("id", "=", ids[0] ?? "")
      .execute();
    expect(await assignTransfers(db, { calls: signed, laneId, nonce: 0, at: now })).toEqual([ids[1]]);
    expect(await assignTransfers(db, { calls: await readCalls(ids), laneId, nonce: 0, at: now })).toEqual([ids[0]]);
  });

  test("a transfer that is unassigned without a trace becomes ready again, and any lane retries it alone after a delay", async () => {
    const { lanes, ids, claim: claimFor } = await makeChain(2, 1);
    const [mine, other] = lanes.map(({ id }) => id) as [string, string];
    await claimFor(mine);
    await assignTransfers(db, { calls: await readCalls(ids), laneId: mine, nonce: 0, at: now });
    expect(await unassignTransfers(db, { ids, reason: "no trace", now })).toEqual(ids);
    const claim = {
      chain: lanes[0]?.chain ?? "",
      laneId: other,
      kinds: ["eip3009" as const],
      limit: 1,
      mostInclusions: 3,
    };
    expect(await claimReady(db, { ...claim, now }), "not at once").toEqual([]);
    const [row] = await claimReady(db, { ...claim, now: later(60_000) });
    expect(row).toMatchObject({ id: ids[0], alone: true, lane_nonce: null, last_error: "no trace" });
  });
});

describe("waking the owners of lanes", () => {
  const wake = (
    { chain, lanes }: Awaited<ReturnType<typeof makeChain>>,
    more: { most?: number; recentMs?: number } = {},
  ) => wakeEnoughLanes(db, { chain, addresses: lanes.map(({ address }) => address), most: 2, recentMs: 0, ...more });
  const release = async (lane: LaneLease | undefined) => (lane ? releaseLane(db, lane) : undefined);

  test("the owners are asked when every lane has one, whatever waits", async () => {
    const made = await makeChain(2, 9);
    expect(await wake(made)).toBe(true);
    for (const lane of made.lanes) expect(await release(lane)).toBe("wake_requested");
  });

  test("no job takes a free lane while the next batch of a working lane has room for what waits", async () => {
    const made = await makeChain(2, 2);
    await release(made.lanes[0]);
    expect(await wake(made)).toBe(true);
    expect(await release(made.lanes[1])).toBe("wake_requested");
    expect(await release(made.lanes[1])).toBe("released");
    expect(await wake(made), "no lane is working").toBe(false);
  });

  test("a job takes a free lane when more waits than a batch, when a transfer goes alone, or when the owner is slow", async () => {
    const made = await makeChain(2, 3);
    await release(made.lanes[0]);
    expect(await wake(made)).toBe(false);
    expect(await wake(made, { most: 3 })).toBe(true);
    expect(await wake(made, { most: 3, recentMs: 600_000 }), "the lease was not renewed lately").toBe(false);
    await sql`update transfer set alone = true where chain = ${made.chain}`.execute(db);
    expect(await wake(made, { most: 3 })).toBe(false);
  });

  test("transfers that a working lane has reserved do not wait", async () => {
    const made = await makeChain(2, 4);
    await release(made.lanes[0]);
    expect(await wake(made, { most: 3 })).toBe(false);
    await made.claim(made.lanes[1]?.id ?? "");
    expect(await wake(made, { most: 3 })).toBe(true);
  });
});
