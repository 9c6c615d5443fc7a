import { sql } from "kysely";
import { expect, test } from "vitest";
import { moveRows } from "../../../../db/moves.ts";
import { openDb } from "../../../../db/open.ts";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { checkLedger } from "../../../../payments/accounting/check-ledger.ts";
import {
  assignException,
  bookException,
  type ExceptionView,
  listExceptions,
  returnException,
} from "../../../../payments/accounting/resolve-exceptions.ts";
import { withdrawRefund } from "../../../../payments/payouts/withdraw-refunds.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { fundBuyer, sendUsdc, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { plantRefundState } from "../../../support/plant-state.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const treasury = chain.keys.treasury.address;
const AMOUNT = 3_000_000n;

const withdraw = (refundId: string, of: MerchantFixture = fixture) =>
  withdrawRefund(of.deps, { actor: testActor, refundId });
const list = () => listExceptions(fixture.deps, 100);
const stateOf = async (id: string, of: MerchantFixture = fixture) =>
  (await of.db.selectFrom("refund").select("state").where("id", "=", id).executeTakeFirstOrThrow()).state;
const booked = async (account: string) => (await listBalances(fixture.db, { account }))[0]?.amount ?? 0n;

/** Sends money that names no payment to the treasury. Returns its sender and its exception. */
async function sendUnknown(of: MerchantFixture = fixture) {
  const sender = await fundBuyer(chain, AMOUNT);
  await sendUsdc(chain, sender, treasury, AMOUNT);
  await of.watch();
  return { sender, exception: await findOpen(of) };
}

/** Relays the money of a payment that has failed. Returns the payment's id and the exception of its money. */
async function payLate() {
  const paymentId = await fixture.create(100n);
  await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
  await moveRows(fixture.db, "payment", { ids: [paymentId], from: "processing", to: "failed", at: fixture.deps.now() });
  await fixture.relay();
  await fixture.watch();
  return { paymentId, exception: await findOpen() };
}

/** Returns the newest open exception. */
async function findOpen(of: MerchantFixture = fixture): Promise<ExceptionView> {
  const one = (await listExceptions(of.deps, 100)).at(-1);
  if (!one) throw new Error("there is no open exception");
  return one;
}

/** Books the return of an exception. Returns the refund's id. */
async function bookReturn({ id }: ExceptionView, of: MerchantFixture = fixture): Promise<string> {
  unwrap(await returnException(of.deps, { actor: testActor, id }));
  const refund = of.db.selectFrom("refund").select("id").where("exception_id", "=", id);
  return (await refund.executeTakeFirstOrThrow()).id;
}

async function expectEven() {
  expect(await booked("treasury")).toBe(await usdcBalance(chain, treasury));
  expect(await booked("in_transit")).toBe(0n);
  expect(await checkLedger(fixture.db, { since: undefined })).toEqual([]);
}

test("a return that is held because of its screened sender is withdrawn, and its money is returned later", async () => {
  const { sender, exception } = await sendUnknown();
  fixture.screened.add(sender.address.toLowerCase());
  const refundId = await bookReturn(exception);
  expect(await fixture.refund(refundId)).toEqual(["not_served"]);
  expect(await stateOf(refundId)).toBe("held");
  expect(await list()).toEqual([]);

  const both = await Promise.all([withdraw(refundId), withdraw(refundId)]);
  for (const one of both)
    expect(one).toMatchObject({
      ok: true,
      value: { refundId, paymentId: null, status: "failed", reason: "withdrawn" },
    });
  const { id, at, note, ...same } = exception;
  const [reopened, ...others] = await list();
  expect(reopened).toMatchObject({ ...same, note: `the return ${refundId} of exception ${id} was withdrawn` });
  expect(others).toEqual([]);
  expect(await booked("exceptions")).toBe(-AMOUNT);
  await expectEven();

  fixture.screened.delete(sender.address.toLowerCase());
  const secondId = await bookReturn(reopened ?? exception);
  expect(secondId).not.toBe(refundId);
  expect(await fixture.refund(secondId)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  expect(await stateOf(secondId)).toBe("paid");
  expect(await usdcBalance(chain, sender.address)).toBe(AMOUNT);
  expect(await list()).toEqual([]);
  await expectEven();
});

test("the money of withdrawn returns is assigned to its payment or booked as a loss", async () => {
  const late = await payLate();
  unwrap(await withdraw(await bookReturn(late.exception)));
  const second = await findOpen();
  expect(second).toMatchObject({ kind: "late", paymentId: late.paymentId, amount: 1_000_000n });
  const owed = await booked(`payable:${fixture.merchantId}`);
  unwrap(await assignException(fixture.deps, { actor: testActor, id: second.id, paymentId: late.paymentId }));
  expect(await booked(`payable:${fixture.merchantId}`)).toBe(owed - 1_000_000n);
  await expectEven();

  const { exception } = await sendUnknown();
  unwrap(await withdraw(await bookReturn(exception)));
  unwrap(await withdraw(await bookReturn(await findOpen())));
  const { id } = await findOpen();
  unwrap(await bookException(fixture.deps, { actor: testActor, id, as: "losses", note: "sent by hand" }));
  expect(await booked("losses")).toBe(-AMOUNT);
  expect(await list()).toEqual([]);
  await expectEven();
});

test("the api's login does not withdraw a return, whose money would be in no account of the ledger", async () => {
  const refundId = await bookReturn((await sendUnknown()).exception);
  const asApi = openDb(await roleUrl(fixture.databaseUrl, "api"), { max: 1, applicationName: "thief" });
  addCleanup(() => asApi.destroy());
  await sql`select withdraw_refund(${refundId}, now())`.execute(asApi);
  expect(await stateOf(refundId)).toBe("due");
  unwrap(await withdraw(refundId));
  await expectEven();
});

test("a merchant's key does not withdraw a return", async () => {
  const refundId = await bookReturn((await sendUnknown()).exception);
  const { accountId, mode, deps } = fixture;
  const owner = { accountId, mode, onlyMerchants: null };
  expect(await withdrawRefund(deps, { actor: testActor, refundId, owner })).toMatchObject({
    code: "refund_not_found",
  });
  expect(await stateOf(refundId)).toBe("due");
  unwrap(await withdraw(refundId));
});

test("a return that has begun, or that the chain shows as sent, is not withdrawn", async () => {
  const own = await makeMerchantFixture(chain);
  const refundId = await bookReturn((await sendUnknown(own)).exception, own);
  await own.refund(refundId);
  expect(await withdraw(refundId, own)).toMatchObject({
    code: "invalid_state",
    message: "the refund is processing",
  });
  await own.relay();
  await own.watch();
  // Simulates a backup from before the return began.
  const transfer = await own.db
    .selectFrom("transfer")
    .select("id")
    .where("refund_id", "=", refundId)
    .executeTakeFirstOrThrow();
  await sql`update observation set transfer_id = null where transfer_id = ${transfer.id}`.execute(own.db);
  await plantRefundState(own.db, refundId, "due");
  expect(await withdraw(refundId, own)).toMatchObject({
    code: "invalid_state",
    message: "the chain shows that the refund was sent",
  });
  expect(await stateOf(refundId, own)).toBe("due");
});
