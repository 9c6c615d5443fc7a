import { expect, test } from "vitest";
import { beginRefunds } from "../../../payments/payouts/begin-refunds.ts";
import { refundPayment } from "../../../payments/payouts/refund-payment.ts";
import { unwrap } from "../../support/merchant-fixture.ts";
import { describeSolanaDeployment, makeSolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { spawnSigner } from "../../support/spawn-signer.ts";
import { testActor } from "../../support/test-actor.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana, tokenBalance } from "../../support/test-solana.ts";

const solana = await startTestSolana();
const keys = await makeSolanaKeys(solana);
// Only the signer's process has the treasury's key.
const { SOLANA_TREASURY_KEY = "" } = keys.env;
const document = await describeSolanaDeployment(solana, keys);
const { signer, process } = await spawnSigner(document, [solana.asset], { SOLANA_TREASURY_KEY });
const fixture = await makeSolanaMerchantFixture(solana, { keys, signer });
const { deps } = fixture;
const balanceOf = (owner: string) => tokenBalance(solana, owner);

test("a settlement and a refund on Solana are paid through the signer's process", async () => {
  const settled = await fixture.pay(await fundSolanaBuyer(solana), 500n);
  const { id } = await fixture.settlementOf(settled);
  expect(await fixture.settle(id)).toEqual(["begun"]);
  const buyer = await fundSolanaBuyer(solana, 2_000_000n);
  const refunded = await fixture.pay(buyer, 200n);
  const { refundId } = unwrap(await refundPayment(deps, { actor: testActor, paymentId: refunded, mode: "live" }));
  await fixture.settle();
  expect(await beginRefunds(deps, [refundId])).toEqual(["begun"]);
  await fixture.watchUntil(async () => {
    await fixture.submit();
    return (await fixture.settlementOf(settled)).state === "paid" && (await balanceOf(buyer.address)) === 2_000_000n;
  });
  expect(await balanceOf(fixture.destination)).toBe(5_000_000n);
});

test("while the signer's process is gone, a payout waits and payments succeed", async () => {
  const first = await fixture.pay(await fundSolanaBuyer(solana), 100n);
  const { id } = await fixture.settlementOf(first);
  expect(await fixture.settle(id)).toEqual(["begun"]);
  await process.kill("SIGKILL");
  await fixture.submit();
  const transfer = fixture.db.selectFrom("transfer").selectAll().where("settlement_id", "=", id);
  expect(await transfer.executeTakeFirst()).toMatchObject({
    state: "ready",
    last_error: expect.stringContaining("signer_unavailable"),
  });
  const second = await fixture.pay(await fundSolanaBuyer(solana), 100n);
  expect((await fixture.status(second)).state).toBe("succeeded");
});
