import { zeroAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { moveRows } from "../../../../db/moves.ts";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { execute } from "../../../../local/execute-sql.ts";
import { mintUsdc } from "../../../../local/usdc.ts";
import { checkLedger } from "../../../../payments/accounting/check-ledger.ts";
import {
  assignException,
  bookException,
  listExceptions,
  returnException,
} from "../../../../payments/accounting/resolve-exceptions.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { adminIn } from "../../../support/admin.ts";
import { fundBuyer, networksFileFor, sendUsdc, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { copyDatabase } from "../../../support/test-database.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const treasury = chain.keys.treasury.address;
const list = (of: MerchantFixture = fixture) => listExceptions(of.deps, 100);
const newest = async (of: MerchantFixture = fixture) => {
  const one = (await list(of)).at(-1);
  if (!one) throw new Error("there is no open exception");
  return one;
};
const booked = async (account: string, of: MerchantFixture = fixture) =>
  (await listBalances(of.db, { account }))[0]?.amount ?? 0n;

/** Relays the money of a payment that has already failed. */
async function payLate() {
  const buyer = await fundBuyer(chain);
  const late = await fixture.create(100n);
  await fixture.verify(await fixture.attempt(late, buyer));
  await moveRows(fixture.db, "payment", { ids: [late], from: "processing", to: "failed", at: fixture.deps.now() });
  await fixture.relay();
  await fixture.watch();
  return { buyer, late };
}

async function sendUnknown(amount = 3_000_000n) {
  const buyer = await fundBuyer(chain);
  await sendUsdc(chain, buyer, treasury, amount);
  await fixture.watch();
  return { buyer, amount };
}

async function expectEven(of: MerchantFixture = fixture) {
  expect(await booked("treasury", of)).toBe(await usdcBalance(chain, treasury));
  expect(await checkLedger(of.db, { since: undefined })).toEqual([]);
}

test("money that arrives for an ended payment is booked as an exception and does not affect other payments", async () => {
  const fine = await fixture.create(250n);
  await fixture.verify(await fixture.attempt(fine, await fundBuyer(chain)));
  const { buyer, late } = await payLate();
  expect((await fixture.status(late)).state).toBe("failed");
  expect((await fixture.status(fine)).state).toBe("succeeded");
  expect(await booked("exceptions")).toBe(-1_000_000n);
  expect(await booked(`payable:${fixture.merchantId}`)).toBe(-2_500_000n);
  await expectEven();
  expect(await fixture.db.selectFrom("settlement").select("amount").execute()).toEqual([{ amount: 2_500_000n }]);
  expect(await list()).toMatchObject([
    {
      kind: "late",
      paymentId: late,
      paymentState: "failed",
      amount: 1_000_000n,
      asset: chain.asset,
      payer: buyer.address.toLowerCase(),
    },
  ]);
});

describe("exceptions", () => {
  test("an exception is resolved once when several operators resolve it concurrently", async () => {
    const { late } = await payLate();
    const { id } = await newest();
    const owed = await booked(`payable:${fixture.merchantId}`);
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        index % 2
          ? assignException(fixture.deps, { actor: testActor, id, paymentId: late })
          : returnException(fixture.deps, { actor: testActor, id }),
      ),
    );
    expect(outcomes.filter(({ ok }) => ok)).toHaveLength(1);
    for (const one of outcomes) if (!one.ok) expect(one).toMatchObject({ code: "invalid_state" });
    const wasAssigned = outcomes.findIndex(({ ok }) => ok) % 2 === 1;
    expect(await booked(`payable:${fixture.merchantId}`)).toBe(owed - (wasAssigned ? 1_000_000n : 0n));
    const sentBack = await fixture.db.selectFrom("refund").select("id").where("exception_id", "=", id).execute();
    expect(sentBack).toHaveLength(wasAssigned ? 0 : 1);
  });

  test("an exception assigned to a payment is paid out to its merchant, and the payment's state does not change", async () => {
    const { late } = await payLate();
    const { id } = await newest();
    expect(
      await assignException(fixture.deps, { actor: testActor, id, paymentId: `pay_${"0".repeat(32)}` }),
    ).toMatchObject({
      code: "payment_not_found",
    });
    unwrap(await assignException(fixture.deps, { actor: testActor, id, paymentId: late }));
    const before = await usdcBalance(chain, fixture.destination);
    const due = await fixture.db
      .selectFrom("settlement")
      .select("id")
      .where("state", "=", "due")
      .orderBy("created_at", "desc")
      .executeTakeFirstOrThrow();
    await fixture.settle(due.id);
    await fixture.relay();
    await fixture.watch();
    expect((await usdcBalance(chain, fixture.destination)) - before).toBe(1_000_000n);
    expect((await fixture.status(late)).state).toBe("failed");
    expect(
      (await fixture.db.selectFrom("payment").select("settlement_id").where("id", "=", late).executeTakeFirstOrThrow())
        .settlement_id,
    ).toBeNull();
    await expectEven();
  });

  test("money in an asset for which the payment's merchant has no destination is not assigned, and stays an exception", async () => {
    const { late } = await payLate();
    const { id } = await newest();
    const { merchantId } = fixture;
    const rows = fixture.db.updateTable("settlement_destination").where("merchant_id", "=", merchantId);
    await rows.set({ asset: `${chain.id}/erc20:0x${"99".repeat(20)}` }).execute();
    const assign = () => assignException(fixture.deps, { actor: testActor, id, paymentId: late });
    expect(await assign()).toMatchObject({ code: "invalid_state", message: expect.stringContaining("no destination") });
    await rows.set({ asset: chain.asset }).execute();
    expect(await newest()).toMatchObject({ id });
    unwrap(await assign());
  });

  test("unsolicited money is listed as unknown and is returned to its sender once", async () => {
    const { buyer, amount } = await sendUnknown();
    const one = await newest();
    expect(one).toMatchObject({ kind: "unknown", paymentId: null, perhaps: null, amount });
    unwrap(await returnException(fixture.deps, { actor: testActor, id: one.id }));
    expect(await returnException(fixture.deps, { actor: testActor, id: one.id })).toMatchObject({
      code: "invalid_state",
    });
    const refund = await fixture.db
      .selectFrom("refund")
      .select("id")
      .where("exception_id", "=", one.id)
      .executeTakeFirstOrThrow();
    await fixture.refund(refund.id);
    await fixture.refund(refund.id);
    await fixture.relay();
    await fixture.watch();
    expect(await usdcBalance(chain, buyer.address)).toBe(1_000_000_000n);
    expect((await list()).map(({ id }) => id)).not.toContain(one.id);
    await expectEven();
  });

  test("unsolicited money whose sender the chain does not show cannot be returned", async () => {
    const { buyer } = await sendUnknown();
    await fixture.db
      .updateTable("observation")
      .set({ payer: "" })
      .where("payer", "=", buyer.address.toLowerCase())
      .where("receiver", "=", treasury.toLowerCase())
      .execute();
    const one = await newest();
    expect(one).toMatchObject({ kind: "unknown", payer: null });
    const refused = { code: "invalid_state", message: "the sender of the money is not on record" };
    expect(await returnException(fixture.deps, { actor: testActor, id: one.id })).toMatchObject(refused);
  });

  test("tokens that are minted to the treasury cannot be returned, because their sender is the zero address", async () => {
    await mintUsdc(chain.client, chain.contracts.token, [treasury], 4_000_000n);
    await fixture.watch();
    const one = await newest();
    expect(one).toMatchObject({ kind: "unknown", payer: zeroAddress, amount: 4_000_000n });
    const message = "the money cannot be returned: its sender is the zero address";
    const refused = { code: "invalid_state", message };
    expect(await returnException(fixture.deps, { actor: testActor, id: one.id })).toMatchObject(refused);
    expect((await list()).map(({ id }) => id)).toContain(one.id);
  });

  test("unsolicited money from a known payer is listed with that payer's payment of the last week as a guess", async () => {
    const buyer = await fundBuyer(chain);
    await fixture.pay(buyer);
    const paymentId = await fixture.pay(buyer);
    await sendUsdc(chain, buyer, treasury, 5n);
    await fixture.watch();
    expect(await newest()).toMatchObject({ kind: "unknown", perhaps: paymentId });
    const recordLater = (days: number) =>
      execute(
        fixture.databaseUrl,
        `update observation set observed_at = observed_at + interval '${days} days' where amount = 5`,
      );
    await recordLater(6);
    expect(await newest()).toMatchObject({ perhaps: paymentId });
    await recordLater(2);
    expect(await newest()).toMatchObject({ perhaps: null });
  });

  test("an operator books their own deposit as capital and lost money as a loss", async () => {
    const { amount } = await sendUnknown(7_000_000n);
    const one = await newest();
    unwrap(await bookException(fixture.deps, { actor: testActor, id: one.id, as: "capital", note: "inventory" }));
    expect(await booked("operator_capital")).toBe(-amount);
    await sendUnknown(1n);
    unwrap(
      await bookException(fixture.deps, { actor: testActor, id: (await newest()).id, as: "losses", note: "dust" }),
    );
    expect(await booked("losses")).toBe(-1n);
    await expectEven();
  });
});

test("money that leaves the treasury without the service is listed as left and cannot be returned", async () => {
  const own = await startChain();
  const robbed = await makeMerchantFixture(own);
  await robbed.pay(await fundBuyer(own), 500n);
  const thief = (await fundBuyer(own)).address;
  await sendUsdc(own, privateKeyToAccount(own.keys.treasury.privateKey), thief, 2_000_000n);
  await robbed.watch();
  const one = await newest(robbed);
  expect(one).toMatchObject({ kind: "left", amount: -2_000_000n, receiver: thief.toLowerCase() });
  expect(await returnException(robbed.deps, { actor: testActor, id: one.id })).toMatchObject({ code: "invalid_state" });
  unwrap(await bookException(robbed.deps, { actor: testActor, id: one.id, as: "losses", note: "stolen" }));
  expect(await booked("losses", robbed)).toBe(2_000_000n);
  expect(await booked("treasury", robbed)).toBe(await usdcBalance(own, own.keys.treasury.address));
});

test("a restored database adopts a refund that the backup lacks and does not send it again", async () => {
  const own = await startChain();
  const first = await makeMerchantFixture(own);
  const buyer = await fundBuyer(own);
  const paymentId = await first.pay(buyer);
  const { refundId } = unwrap(await refundPayment(first.deps, { actor: testActor, paymentId, mode: "live" }));
  await first.db.destroy();
  const backup = await copyDatabase(first.databaseUrl);
  const lost = await makeMerchantFixture(own, { databaseUrl: first.databaseUrl });
  await lost.watch();
  await lost.refund(refundId);
  await lost.relay();

  const restored = await makeMerchantFixture(own, { databaseUrl: backup });
  await restored.watch();
  expect(await newest(restored)).toMatchObject({ kind: "left" });
  await restored.refund(refundId);
  await restored.relay();
  await restored.watch();
  expect(await list(restored)).toEqual([]);
  expect(await restored.db.selectFrom("refund").select("state").executeTakeFirst()).toEqual({ state: "paid" });
  expect(await usdcBalance(own, buyer.address)).toBe(1_000_000_000n);
  expect(await listBalances(restored.db, { asset: own.asset })).toEqual([]);
});

test("an operator lists, assigns, returns and books exceptions by command, and each action is recorded", async () => {
  const environment = { DATABASE_URL: fixture.databaseUrl, NETWORKS_FILE: await networksFileFor(chain) };
  const admin = adminIn({ ...environment, OPERATOR: "night watch" });
  const ids = [];
  for (let round = 0; round < 3; round += 1) {
    await sendUnknown(11n);
    ids.push(String((await newest()).id));
  }
  const [one = "", two = "", three = ""] = ids;
  const paymentId = await fixture.pay(await fundBuyer(chain));
  const listed = await admin("exceptions", "list");
  for (const part of [...ids, "unknown", chain.asset]) expect(listed.stdout).toContain(part);
  const assign = ["exceptions", "assign", one, "--payment", paymentId];
  expect(await admin(...assign)).toMatchObject({ code: 1, stderr: expect.stringContaining("does not name") });
  expect(await admin(...assign, "--unnamed")).toMatchObject({ code: 0 });
  expect(await admin(...assign)).toMatchObject({
    code: 1,
    stderr: `there is no open exception ${one}\n`,
  });
  expect(await admin("exceptions", "return", two)).toMatchObject({ code: 0 });
  expect(await admin("exceptions", "return", "x")).toMatchObject({ code: 2 });
  const capital = await booked("operator_capital");
  expect(await admin("ledger", "book-capital", three, "--note", "inventory")).toMatchObject({ code: 0 });
  expect(await booked("operator_capital")).toBe(capital - 11n);
  const correct = [
    "ledger",
    "correct",
    "--asset",
    chain.asset,
    "--amount",
    "5",
    "--note",
    "a test",
    "--credit",
    "losses",
    "--reference",
    "OPS-17",
  ];
  expect(await admin(...correct, "--debit", "operator_capital")).toMatchObject({ code: 0 });
  // The operator lost the answer and repeats the command.
  expect(await admin(...correct, "--debit", "operator_capital")).toMatchObject({ code: 0 });
  expect(await admin(...correct, "--debit", "gas_spent")).toMatchObject({
    code: 1,
    stderr: "--reference: another correction is booked as OPS-17\n",
  });
  expect(await admin(...correct, "--debit", `payable:${fixture.merchantId}`)).toMatchObject({ code: 1 });
  expect(await booked("operator_capital")).toBe(capital - 6n);
  const { stdout } = await admin("ledger", "balances", "--account", "operator_capital", "--json");
  expect(JSON.parse(stdout)).toEqual([
    { account: "operator_capital", asset: chain.asset, amount: String(capital - 6n) },
  ]);
  expect(JSON.parse((await admin("ledger", "balances", "--day", "2020-01-01", "--json")).stdout)).toEqual([]);
  const actions = await fixture.db
    .selectFrom("audit_entry")
    .select(["action"])
    .where("actor_id", "<>", testActor.id)
    .orderBy("day")
    .orderBy("sequence")
    .execute();
  expect(actions.map(({ action }) => action)).toEqual([
    "exception.assigned",
    "exception.returned",
    "exception.booked",
    "ledger.corrected",
  ]);
  await expectEven();
});
