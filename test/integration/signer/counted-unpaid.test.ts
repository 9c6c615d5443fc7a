import { expect, test } from "vitest";
import { clearFee, setFee } from "../../../payments/merchants/fee-policies.ts";
import { changeMerchant } from "../../../payments/merchants/merchants.ts";
import { beginRefunds } from "../../../payments/payouts/begin-refunds.ts";
import { refundPayment } from "../../../payments/payouts/refund-payment.ts";
import { withdrawRefund } from "../../../payments/payouts/withdraw-refunds.ts";
import { refuse } from "../../../signer/refuse.ts";
import type { TreasurySigner } from "../../../signer/treasury-signer.ts";
import { fundBuyer, startChain, usdcBalance } from "../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { startTestSigner } from "../../support/test-signer.ts";

const chain = await startChain();

test("a payment of the operator's with a fee of 100 % covers what the signer has counted and the chain did not move", async () => {
  const { signer, payouts } = await startTestSigner(chain);
  const shop = await makeMerchantFixture(chain, { signer });
  const { deps, accountId, merchantId, mode } = shop;
  const paymentId = await shop.pay(await fundBuyer(chain), 300n);
  const { id } = await shop.settlementOf(paymentId);

  // The signer counts a refund whose answer is lost, and the refund is withdrawn.
  const amount = { unit: "iso4217/USD", value: 100n };
  const { refundId } = unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode, amount }));
  const lost: TreasurySigner = {
    ...signer,
    signPayouts: async (all) => {
      await signer.signPayouts(all);
      return all.map(() => refuse("signer_unavailable"));
    },
  };
  expect(await beginRefunds({ ...deps, signer: lost }, [refundId])).toEqual(["signer_unavailable"]);
  unwrap(await withdrawRefund(deps, { actor: testActor, refundId }));
  expect(await shop.settle(id)).toEqual(["funds_short"]);

  // The runbook's step.
  const owner = { actor: testActor, accountId, merchantId };
  const setStatus = async (status: "active" | "inactive") =>
    unwrap(await changeMerchant(deps, { ...owner, mode, status }));
  const covering = await shop.create(101n);
  await setStatus("inactive");
  await setFee(deps, { ...owner, basisPoints: 10_000, fixedMicros: 0n });
  await shop.verify(await shop.attempt(covering, await fundBuyer(chain)));
  expect(await clearFee(deps, owner)).toBe(true);
  await setStatus("active");
  await shop.relay();
  await shop.watch();
  expect(await shop.settle(id)).toEqual(["begun"]);
  expect(await shop.settle((await shop.settlementOf(covering)).id)).toEqual(["begun"]);
  await shop.relay();
  await shop.watch();
  expect(await usdcBalance(chain, shop.destination)).toBe(3_000_001n);
  expect(payouts().map(({ kind, counted }) => [kind, counted])).toEqual([
    ["refund", "1000000"],
    ["settlement", "3000000"],
    ["settlement", "1"],
  ]);
});
