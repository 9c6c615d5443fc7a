import { expect, test } from "vitest";
import { insertObservations } from "../../../../db/queries/observations.ts";
import { createSendHandlers } from "../../../../payments/lifecycle/relay-transfers.ts";
import { relayReady } from "../../../../transfers/evm/drive-lanes.ts";
import { fundBuyers, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

test("a payout whose adoption throws is held, and a buyer's transfer in the same batch is sent", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { deps, db } = fixture;
  const [first, second] = await fundBuyers(chain, 2);
  if (!first || !second) throw new Error("no buyers");
  const { id } = await fixture.settlementOf(await fixture.pay(first, 100n));
  expect(await fixture.settle(id)).toEqual(["begun"]);
  const payout = async () => (await fixture.transfers()).find(({ settlement_id }) => settlement_id === id);
  const begun = await payout();
  if (!begun) throw new Error("the payout has no transfer");
  const { token, payer, receiver, amount, authorization_nonce } = begun;
  const place = { chain: chain.id, block_id: "0x01", block_number: 1, tx_hash: "0x02", log_index: 0 };
  const movement = { token, payer, receiver, amount, authorization_nonce };
  await insertObservations(db, [{ ...place, ...movement, transfer_id: null, observed_at: deps.now() }]);
  const paymentId = await fixture.create(200n);
  await fixture.verify(await fixture.attempt(paymentId, second));

  const adopted = () => Promise.reject(new Error("the adoption fails"));
  await relayReady(deps, chain.id, { ...createSendHandlers(deps), adopted });
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await payout()).toMatchObject({
    state: "ready",
    last_error: "it cannot be processed: the adoption fails",
    hold_until: expect.any(Date),
  });
  expect(await usdcBalance(chain, fixture.destination)).toBe(0n);
  fixture.clock.advance(61_000);
  await fixture.watch();
  await fixture.relay();
  expect(await payout()).toMatchObject({ state: "included", amount });
});
