import { expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { fundBuyer, startChain } from "../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { startTestSigner } from "../../support/test-signer.ts";

const chain = await startChain();

test("a payout of the former treasury is not signed again by the treasury that replaces it", async () => {
  const signing = await startTestSigner(chain);
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
  const paymentId = await fixture.pay(await fundBuyer(chain), 300n);
  const { id } = await fixture.settlementOf(paymentId);
  expect(await fixture.settle(id)).toEqual(["begun"]);
  const { number, amount } = await fixture.db
    .selectFrom("settlement")
    .select(["number", "amount"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  const asked = { kind: "settlement", merchantId: fixture.merchantId, number, asset: chain.asset, amount } as const;
  const request = { ...asked, receiver: fixture.destination, deposits: [] };
  expect(await signing.signer.signPayouts([request])).toMatchObject([{ ok: true }]);

  // The nonces of the new treasury's account are unused, and the signer keeps its records.
  const opened = signing.deps.chains.get(chain.id);
  if (!opened) throw new Error("the signer has no chain");
  Object.assign(opened, { treasury: newKey().address });
  expect(await signing.signer.signPayouts([request])).toMatchObject([{ ok: false, reason: "treasury_changed" }]);
});
