import { describe, expect, test } from "vitest";
import { createStore } from "../../../signer/create-store.ts";
import { type Deposit, insertDeposits, insertPayout, sumDeposits, sumWindow } from "../../../signer/records.ts";
import { inStoreTransaction } from "../../../signer/store.ts";

const asset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
const at = new Date("2026-03-01T10:00:00Z");

function deposit(logIndex: number, merchantId: string): Deposit {
  const place = { chain: "eip155:31337", txHash: "0x01", logIndex, blockNumber: 1 };
  return { ...place, asset, amount: 10n, payer: "0x02", merchantId, paymentId: `pay_${logIndex}` };
}

test("a log that a request names twice, or that is recorded already, counts once in its merchant's funds", () => {
  const store = createStore(":memory:", { command: "init", at });
  const record = (...deposits: Deposit[]) => inStoreTransaction(store, () => insertDeposits(store, deposits, at));
  record(deposit(1, "mrch_1"), deposit(2, "mrch_2"), deposit(1, "mrch_1"), deposit(3, "mrch_1"));
  record(deposit(3, "mrch_1"), deposit(4, "mrch_1"));
  const funds = ["mrch_1", "mrch_2"].map((merchantId) => sumDeposits(store, { merchantId, asset }));
  expect(funds).toEqual([30n, 10n]);
});

describe("a window counts the payouts that the clock dates within it,", () => {
  const windowMs = 3_600_000;
  const merchants = ["mrch_1", "mrch_2"] as const;

  /** A store whose payouts are recorded at the times that the test names, seconds after `at`. */
  function setUp() {
    const store = createStore(":memory:", { command: "init", at });
    const added: { merchantId: string; counted: bigint; second: number; isPast: boolean; isNew: boolean }[] = [];
    const timeOf = (second: number) => new Date(at.getTime() + second * 1_000);
    const pay = (second: number, { merchantId = "mrch_1", counted = 10n, isPast = false, isNew = false } = {}) => {
      const of = { kind: "settlement", treasury: "0x01", receiver: "0x02", merchantId, paymentId: null };
      const payout = { ...of, nonce: `0x${added.length}`, asset, amount: counted, counted };
      inStoreTransaction(store, () =>
        insertPayout(store, payout, isPast ? new Date(0) : timeOf(second), { isPast, ofNewMerchant: isNew }),
      );
      added.push({ merchantId, counted, second: isPast ? Number.NEGATIVE_INFINITY : second, isPast, isNew });
    };
    const sum = (second: number, merchantId?: string) =>
      sumWindow(store, merchantId === undefined ? { asset } : { asset, merchantId }, { at: timeOf(second), windowMs });
    const sumNew = (second: number) => sumWindow(store, { asset, onlyNew: true }, { at: timeOf(second), windowMs });
    const expected = (second: number, is: (one: (typeof added)[number]) => boolean = () => true) =>
      added
        .filter(is)
        .filter((one) => one.second > second - windowMs / 1_000)
        .reduce((total, { counted }) => total + counted, 0n);
    return { store, pay, sum, sumNew, expected };
  }

  test("also one that was recorded after the clock had gone back, which no other payout follows", () => {
    const { pay, sum } = setUp();
    pay(2);
    pay(1);
    const after = [3_600, 3_601, 3_602, 10 * 3_600].map((second) => [sum(second), sum(second, "mrch_1")]);
    expect(after).toEqual([
      [20n, 20n],
      [10n, 10n],
      [0n, 0n],
      [0n, 0n],
    ]);
  });

  test("also those between a clock that was a day ahead and its correction", () => {
    const { pay, sum } = setUp();
    const day = 24 * 3_600;
    pay(0);
    pay(day);
    for (let hour = 0; hour < 5; hour += 1) pay(hour * 3_600 + 60);
    expect([sum(5 * 3_600), sum(day + 3_599), sum(day + 3_600)]).toEqual([20n, 10n, 0n]);
  });

  test("and not those of the chain's history, whenever a rebuild has recorded them", () => {
    const { pay, sum } = setUp();
    pay(0);
    pay(0, { isPast: true });
    expect([sum(10), sum(10, "mrch_1"), sum(3_600, "mrch_1")]).toEqual([10n, 10n, 0n]);
  });

  test("whatever the clock did", () => {
    // A linear congruential generator, so that a failure repeats.
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * below);
    };
    for (let round = 0; round < 20; round += 1) {
      const { pay, sum, sumNew, expected } = setUp();
      let clock = 0;
      for (let count = 0; count < 60; count += 1) {
        clock += random(10) === 0 ? random(20_000) - 10_000 : random(300);
        const isPast = random(20) === 0;
        const isNew = !isPast && random(2) === 0;
        pay(clock, { merchantId: merchants[random(2)] ?? "", counted: BigInt(random(100)), isPast, isNew });
        const named = `round ${round}, payout ${count}`;
        expect(sum(clock), named).toBe(expected(clock));
        expect(sumNew(clock), named).toBe(expected(clock, (one) => one.isNew));
        for (const merchantId of merchants)
          expect(sum(clock, merchantId), named).toBe(expected(clock, (one) => one.merchantId === merchantId));
      }
    }
  });

  test("and reads only the first of them, and none before, while the clock goes forward", () => {
    const { store, pay, sum, sumNew } = setUp();
    for (let second = 0; second < 20; second += 1) pay(second, { isNew: true });
    const prepared: string[] = [];
    const prepare = store.prepare.bind(store);
    store.prepare = (text) => {
      prepared.push(text);
      return prepare(text);
    };
    for (const merchantId of [undefined, "mrch_1"]) sum(3_610, merchantId);
    sumNew(3_610);
    const reads = [...new Set(prepared)];
    const plans = reads.map((text) =>
      prepare(`explain query plan ${text}`)
        .all(...Array.from({ length: text.split("?").length - 1 }, () => 0))
        .map(({ detail }) => String(detail)),
    );
    for (const [step] of plans) expect(step).toMatch(/^SEARCH \w+ USING (COVERING )?INDEX/);
    expect(plans.flat().join()).not.toContain("TEMP B-TREE");
    expect(reads.filter((text) => /from (new_merchant_)?payout/.test(text) && !text.includes("limit 1"))).toEqual([]);
  });
});
