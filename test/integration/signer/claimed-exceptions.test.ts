import { expect, test } from "vitest";
import { moveRows } from "../../../db/moves.ts";
import { newKey } from "../../../local/networks-document.ts";
import { assignException, bookException, listExceptions } from "../../../payments/accounting/resolve-exceptions.ts";
import { claimAllDeposits } from "../../../payments/payouts/claim-all-deposits.ts";
import { accumulatePayouts } from "../../support/accumulate-payouts.ts";
import { fundBuyer, sendUsdc, startChain } from "../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { startTestSigner } from "../../support/test-signer.ts";

const chain = await startChain();
const actor = testActor;

async function setUp() {
  const signing = await startTestSigner(chain);
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
  const { db, deps } = fixture;
  /** Relays the money of a payment that has already failed. Returns the exception and the payment. */
  const payLate = async () => {
    const paymentId = await fixture.create(100n);
    await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
    await moveRows(db, "payment", { ids: [paymentId], from: "processing", to: "failed", at: deps.now() });
    await fixture.relay();
    await fixture.watch();
    const late = (await listExceptions(deps, 100)).find((one) => one.paymentId === paymentId);
    if (!late) throw new Error("the late money is no exception");
    return { id: late.id, paymentId };
  };
  return { signing, fixture, payLate, claimAll: () => claimAllDeposits({ db, signer: signing.signer }) };
}

test("money that an operator has assigned to a payment is claimed with all deposits, and paid out after its treasury was replaced", async () => {
  const { signing, fixture, payLate, claimAll } = await setUp();
  await fixture.pay(await fundBuyer(chain), 300n);
  const late = await payLate();
  expect(await claimAll(), "an open exception has no owner").toEqual({ verified: 1, refused: {} });
  unwrap(await assignException(fixture.deps, { actor, ...late }));
  expect(await claimAll()).toEqual({ verified: 2, refused: {} });

  const opened = signing.deps.chains.get(chain.id);
  if (!opened) throw new Error("the signer has no chain");
  Object.assign(opened, { treasury: newKey().address });
  const due = await fixture.db.selectFrom("settlement").select("id").where("state", "=", "due").execute();
  expect(await fixture.settle(...due.map(({ id }) => id))).toEqual(["begun", "begun"]);
});

test("money that was assigned to a payment that it does not name is refused, and money that was booked as capital is not claimed", async () => {
  const { fixture, payLate, claimAll } = await setUp();
  const { id, paymentId } = await payLate();
  unwrap(await bookException(fixture.deps, { actor, id, as: "capital", note: `for ${paymentId}` }));
  expect(await claimAll()).toEqual({ verified: 0, refused: {} });
  await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, 3_000_000n);
  await fixture.watch();
  const [unknown] = await listExceptions(fixture.deps, 100);
  unwrap(await assignException(fixture.deps, { actor, id: unknown?.id ?? 0, paymentId, unnamed: true }));
  expect(await claimAll()).toEqual({ verified: 0, refused: { deposit_mismatch: 1 } });
});

test("money that does not name a payment is not assigned to it, so that the payouts of its merchant do not wait for it", async () => {
  const { fixture, payLate } = await setUp();
  const { deps } = fixture;
  await accumulatePayouts(fixture, { ms: 600_000 });
  const paymentId = await fixture.pay(await fundBuyer(chain), 300n);
  await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, 20_000n);
  await fixture.watch();
  const unknown = (await listExceptions(deps, 100)).find(({ amount }) => amount === 20_000n);
  const late = await payLate();
  for (const id of [unknown?.id ?? 0, late.id])
    expect(await assignException(deps, { actor, id, paymentId })).toMatchObject({
      code: "invalid_state",
      message: expect.stringContaining("does not name this payment"),
    });
  unwrap(await assignException(deps, { actor, ...late }));
  const { id, amount } = await fixture.settlementOf(paymentId);
  expect(amount).toBe(4_000_000n);
  fixture.clock.advance(700_000);
  await fixture.watch();
  expect(await fixture.settle(id)).toEqual(["begun"]);
});
