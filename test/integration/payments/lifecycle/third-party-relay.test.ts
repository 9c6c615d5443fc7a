import { expect, test } from "vitest";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { signUnconfirmed } from "../../../support/signed-payment.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain, { change: { finality: { blocks: 3 } } });

/** Creates a payment that its buyer has signed and not confirmed. */
async function sign() {
  const buyer = await fundBuyer(chain);
  const { paymentId, option, results, relay } = await signUnconfirmed(fixture, { chain, buyer });
  const confirm = async () => unwrap(await fixture.confirm(paymentId, option.id, results)).attemptId;
  const transferState = async () => (await fixture.transfers()).find((one) => one.payment_id === paymentId)?.state;
  return { paymentId, relay, confirm, transferState };
}

/** Expects the service to relay the transfer itself, after a reorg permanently removed the third party's transaction. */
async function expectRelayedByService({ paymentId, transferState }: Awaited<ReturnType<typeof sign>>): Promise<void> {
  expect(await transferState()).toBe("ready");
  const before = (await transfersTo(chain, chain.keys.treasury.address)).length;
  await fixture.relay();
  await mine(chain, 3);
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(before + 1);
}

test("a lane relays a transfer that a reorg removed after a third party relayed it before the confirm", async () => {
  const signed = await sign();
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await signed.relay();
  await fixture.watch();
  expect(await signed.transferState()).toBe("included");
  expect(await signed.confirm()).toBeNull();
  await reorg();
  await fixture.watch();
  await expectRelayedByService(signed);
});

test("a lane relays a transfer that a reorg removed before its confirm", async () => {
  const signed = await sign();
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await signed.relay();
  await fixture.watch();
  await reorg();
  await fixture.watch();
  expect(await signed.transferState()).toBe("awaited");
  expect(await signed.confirm()).toBeNull();
  await expectRelayedByService(signed);
});

test("a lane relays a transfer that a reorg removed after its confirm was refused as already used", async () => {
  const signed = await sign();
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await signed.relay();
  const attemptId = await signed.confirm();
  await fixture.verify(attemptId ?? "");
  expect(await fixture.verificationResult(attemptId ?? "")).toMatchObject({ refused: expect.stringContaining("used") });
  await fixture.watch();
  await reorg();
  await fixture.watch();
  await expectRelayedByService(signed);
});
