import { expect, test } from "vitest";
import { ownActor } from "../../../signer/audit/entries.ts";
import { createStore } from "../../../signer/create-store.ts";
import { recordDestination } from "../../../signer/destinations.ts";
import { isNewMerchant } from "../../../signer/new-merchants.ts";
import { insertDeposits, insertPayout } from "../../../signer/records.ts";
import { inStoreTransaction } from "../../../signer/store.ts";

const [asset, other] = ["a1", "a2"].map((byte) => `eip155:31337/erc20:0x${byte.repeat(20)}`) as [string, string];
const merchantId = "mrch_1";
const start = Date.parse("2026-03-01T00:00:00Z");
const at = (hours: number) => new Date(start + hours * 3_600_000);

/** A signer's store whose claims, deposits and payouts are recorded hours after its start. */
function setUp() {
  const store = createStore(":memory:", { command: "init", at: at(0) });
  let logIndex = 0;
  return {
    store,
    claim: (hours: number) => {
      const period = { at: at(hours), waitingHours: 72, isHeld: false, actor: ownActor };
      inStoreTransaction(store, () => recordDestination(store, { merchantId, asset, receiver: "0x01" }, period));
    },
    deposit: (hours: number, { of = asset, merchant = merchantId } = {}) => {
      const place = { chain: "eip155:31337", txHash: "0x01", logIndex: logIndex++, blockNumber: 1, payer: "0x02" };
      const deposit = { ...place, asset: of, amount: 10n, merchantId: merchant, paymentId: "pay_1" };
      inStoreTransaction(store, () => insertDeposits(store, [deposit], at(hours)));
    },
    payPast: () => {
      const payout = { nonce: "0x03", kind: "settlement", treasury: "0x04", amount: 5n, counted: 5n, receiver: "0x01" };
      inStoreTransaction(store, () =>
        insertPayout(store, { ...payout, asset, merchantId, paymentId: null }, new Date(0), { isPast: true }),
      );
    },
    isNew: (hours: number) => isNewMerchant(store, merchantId, { at: at(hours), waitingHours: 72 }),
  };
}

test("a merchant is new until its first destination and its first deposit are both older than the waiting period", () => {
  const { claim, deposit, isNew } = setUp();
  claim(0);
  deposit(10);
  deposit(80, { of: other });
  expect([isNew(10), isNew(72), isNew(81.9), isNew(82)]).toEqual([true, true, true, false]);
});

test("a merchant with deposits and no destination is new", () => {
  const { claim, deposit, isNew } = setUp();
  deposit(0);
  expect(isNew(100)).toBe(true);
  claim(100);
  expect([isNew(171.9), isNew(172)]).toEqual([true, false]);
});

test("a merchant that was named to the signer long ago is new while no money has come for it", () => {
  const { claim, deposit, isNew } = setUp();
  claim(0);
  deposit(0, { merchant: "mrch_2" });
  expect(isNew(10_000)).toBe(true);
});

test("a merchant that the chain's history has paid is not new after a rebuild", () => {
  const { claim, deposit, payPast, isNew } = setUp();
  deposit(0);
  claim(0);
  expect(isNew(1)).toBe(true);
  payPast();
  expect(isNew(1)).toBe(false);
});

test("whether a merchant is new is found by index, however many deposits and payouts it has", () => {
  const { store } = setUp();
  const prepare = store.prepare.bind(store);
  const plans: string[] = [];
  store.prepare = (text) => {
    const plan = prepare(`explain query plan ${text}`).all(...Array.from(text.matchAll(/\?/g), () => "mrch_1"));
    plans.push(...plan.map(({ detail }) => String(detail)));
    return prepare(text);
  };
  isNewMerchant(store, merchantId, { at: at(0), waitingHours: 72 });
  for (const step of [
    "SEARCH deposit USING COVERING INDEX deposit_merchant_time (merchant_id=?)",
    "SEARCH payout USING COVERING INDEX payout_past (merchant_id=?)",
  ])
    expect(plans).toContain(step);
});
