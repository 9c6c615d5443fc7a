import { expect, test } from "vitest";
import { listWaitingAttempts } from "../../../../db/queries/attempts.ts";
import { verifyBatch } from "../../../../payments/lifecycle/verify-attempts.ts";
import { fundBuyer, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

const chain = await startChain();

/**
 * Confirms a payment twice, first by a stranger who can pay once and has confirmed a payment elsewhere as well. `verifyBoth`
 * verifies both confirms, and calls `meanwhile` when the verification has passed and nothing is accepted yet.
 */
async function confirmTwice() {
  const fixture = await makeMerchantFixture(chain);
  const stranger = await fundBuyer(chain, 1_000_000n);
  const payment = await fixture.create(100n);
  const elsewhere = await fixture.attempt(await fixture.create(100n), stranger);
  const early = await fixture.attempt(payment, stranger);
  fixture.clock.advance(10);
  const late = await fixture.attempt(payment, await fundBuyer(chain));
  const verifyBoth = async (meanwhile: () => Promise<void>) => {
    const { verifier } = fixture.deps;
    let isFirst = true;
    const verify: typeof verifier.verify = async (...args) => {
      const results = await verifier.verify(...args);
      if (isFirst) {
        isFirst = false;
        await meanwhile();
      }
      return results;
    };
    const deps = { ...fixture.deps, verifier: { ...verifier, verify } };
    await verifyBatch(deps, await listWaitingAttempts(fixture.db, [early, late]));
  };
  return { fixture, stranger, payment, elsewhere, early, late, verifyBoth };
}

test("a buyer pays although an earlier confirm of the payment is by an account that has promised its money elsewhere", async () => {
  const { fixture, payment, elsewhere, early, late, verifyBoth } = await confirmTwice();
  await verifyBoth(() => fixture.verify(elsewhere));
  expect(await fixture.verificationResult(early)).toEqual({ refused: expect.stringContaining("exceeds balance") });
  expect(await fixture.verificationResult(late)).toBe("verified");
  expect((await fixture.status(payment)).state).toBe("processing");
});

test("a buyer pays although another worker refuses an earlier confirm of the payment at the same moment", async () => {
  const { fixture, stranger, payment, early, late, verifyBoth } = await confirmTwice();
  await verifyBoth(async () => {
    await sendUsdc(chain, stranger, (await fundBuyer(chain)).address, 1_000_000n);
    await fixture.verify(early);
  });
  expect(await fixture.verificationResult(early)).toEqual({ refused: expect.stringContaining("exceeds balance") });
  expect(await fixture.verificationResult(late)).toBe("verified");
  expect((await fixture.status(payment)).state).toBe("processing");
});
