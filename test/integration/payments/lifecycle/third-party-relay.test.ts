import { sql } from "kysely";
import { expect, test } from "vitest";
import { lockPaidQuotes } from "../../../../db/queries/payment-options.ts";
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

test("quotes that strangers have requested for a payment do not count for its buyer's money, nor does theirs for a quote", async () => {
  const signed = await sign();
  await sql`insert into payment_option (id, payment_id, kind, account, chain, asset, token, payer, receiver, amount, authorization_nonce,
      valid_before, created_at)
    select 'opt_' || lpad(to_hex(n), 32, '0'), payment_id, kind, account, chain, asset, token,
      '0x' || lpad(to_hex(n), 40, '0'), receiver, amount, authorization_nonce, valid_before, created_at
    from payment_option, generate_series(1, 500) n where payment_id = ${signed.paymentId}`.execute(fixture.db);
  const rows = fixture.db.selectFrom("payment_option").selectAll().where("payment_id", "=", signed.paymentId);
  const all = await rows.execute();
  expect(all).toHaveLength(501);
  const [stranger] = all.filter(({ id }) => id.startsWith("opt_0000"));
  const lock = (money: Parameters<typeof lockPaidQuotes>[1]["money"]) =>
    fixture.db.transaction().execute((db) => lockPaidQuotes(db, { chain: chain.id, money }));
  if (!stranger) throw new Error("no quote");
  expect(await lock([{ ...stranger, amount: 1n }])).toEqual([]);
  expect(await lock([stranger])).toMatchObject([{ id: stranger.id }]);
  await signed.relay();
  await fixture.watch();
  await mine(chain, 3);
  await fixture.watch();
  expect((await fixture.status(signed.paymentId)).state).toBe("succeeded");
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
