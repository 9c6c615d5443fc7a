import { expect, test } from "vitest";
import { dispatchRefunds } from "../../../../payments/payouts/dispatch-payouts.ts";
import { findRefundView } from "../../../../payments/payouts/find-refunds.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { fundBuyer, mine, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { expectReconciled, restoreDatabase, work } from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";

const UNIT = 1_000_000n;
const FINAL_AFTER = 4;

/** Restores a database that has lost that a refund was sent. Its receiver is screened since. */
async function loseRefund({ isFinal }: { isFinal: boolean }) {
  const chain = await startChain();
  const options = { change: { finality: { blocks: FINAL_AFTER } } };
  const first = await makeMerchantFixture(chain, options);
  const buyer = await fundBuyer(chain);
  const before = await usdcBalance(chain, buyer.address);
  const [paymentId, other] = [await first.create(300n), await first.create(200n)];
  await first.verify(await first.attempt(paymentId, buyer));
  await first.verify(await first.attempt(other, await fundBuyer(chain)));
  const passBlocks = async (of: MerchantFixture) => {
    await mine(chain, FINAL_AFTER + 1);
    await work(of);
  };
  await first.relay();
  await passBlocks(first);
  const { refundId } = unwrap(await refundPayment(first.deps, { actor: testActor, paymentId, mode: first.mode }));
  const restored = await restoreDatabase(
    first,
    chain,
    async (lost) => {
      expect(await lost.refund(refundId)).toEqual(["begun"]);
      await lost.relay();
      if (isFinal) await mine(chain, FINAL_AFTER + 1);
    },
    options,
  );
  await restored.watch();
  expect(await usdcBalance(chain, buyer.address)).toBe(before);
  restored.screened.add(buyer.address.toLowerCase());
  const dispatch = () => dispatchRefunds(restored.deps, [refundId]);
  const readStatus = async () => unwrap(await findRefundView(restored.deps, { refundId })).status;
  const { destination } = first;
  return { chain, restored, destination, other, dispatch, readStatus, passBlocks: () => passBlocks(restored) };
}

test("a refund that was sent before a restore ends as paid although its receiver is no longer served", async () => {
  const { chain, restored, destination, other, dispatch, readStatus, passBlocks } = await loseRefund({ isFinal: true });
  expect(await dispatch()).toEqual(["begun"]);
  await passBlocks();
  expect(await readStatus()).toBe("succeeded");
  expect(await restored.settle((await restored.settlementOf(other)).id)).toEqual(["begun"]);
  // The lane finds that the lost database has used its nonce.
  for (let round = 0; round < 8; round += 1) await passBlocks();
  expect(await usdcBalance(chain, destination)).toBe(2n * UNIT);
  await expectReconciled(restored, chain);
});

test("a refund that was sent before a restore to a receiver who is no longer served waits until it is final, and is not held", async () => {
  const { restored, dispatch, readStatus, passBlocks } = await loseRefund({ isFinal: false });
  expect(await dispatch()).toEqual(["unrecorded_payout"]);
  expect(await readStatus()).toBe("pending");
  const queue = restored.db.selectFrom("payout_queue").select("blocked_by").where("kind", "=", "refund");
  expect(await queue.execute()).toEqual([{ blocked_by: "unrecorded_payout" }]);
  await passBlocks();
  // What is booked wakes the refund.
  expect(await queue.execute()).toEqual([{ blocked_by: null }]);
  expect(await dispatch()).toEqual(["begun"]);
  await passBlocks();
  expect(await readStatus()).toBe("succeeded");
});
