import type { Hex } from "viem";
import { expect, test } from "vitest";
import { encodeTransfer } from "../../../../chains/evm/eip3009.ts";
import { readEvmRow } from "../../../../db/chain-families.ts";
import { cleanUp } from "../../../../payments/maintenance/clean-up.ts";
import { toAuthorization } from "../../../../transfers/evm/authorization-calls.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, fundBuyers, startChain } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, signOption } from "../../../support/merchant-fixture.ts";
import { mapConcurrently } from "../../../support/sign-payments.ts";
import { relayByThirdParty } from "../../../support/transfers-fixture.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
// Confirms that come within ten seconds are limited, and a slow machine takes longer for them.
fixture.clock.stop();

/** A well-formed signature that no key made. */
const garbage = (seed: number) => [
  { type: "walletRpc" as const, data: [`0x${"1b".repeat(32)}${seed.toString(16).padStart(64, "0")}1b`] },
];
const rowsOf = (own: MerchantFixture, paymentId: string) =>
  own.db.selectFrom("attempt").selectAll().where("payment_id", "=", paymentId).execute();
const eventsOf = (own: MerchantFixture) =>
  own.db.selectFrom("event").select("id").where("machine", "=", "attempt").execute();

/** Confirms with garbage and verifies each attempt. Returns the error codes of the confirms that made no attempt. */
async function flood(own: MerchantFixture, paymentId: string, optionId: string, count: number) {
  const kept: string[] = [];
  for (let seed = 0; seed < count; seed += 1) {
    const answer = await own.confirm(paymentId, optionId, garbage(seed));
    if (answer.ok) await own.verify(answer.value.attemptId ?? "");
    else kept.push(answer.code);
  }
  return kept;
}

test("two hundred garbage confirms leave ten attempts, and the buyer of the option still pays", async () => {
  const id = await fixture.create();
  const buyer = await fundBuyer(chain);
  const [option] = await fixture.offer(id, buyer);
  if (!option) throw new Error("no option");
  const before = (await eventsOf(fixture)).length;
  const refused = await flood(fixture, id, option.id, 200);
  expect(new Set(refused)).toEqual(new Set(["rate_limited"]));
  expect(await rowsOf(fixture, id)).toHaveLength(10);
  expect((await eventsOf(fixture)).length - before).toBeLessThanOrEqual(20);
  const answer = await fixture.confirm(id, option.id, garbage(1_000));
  expect(answer).toMatchObject({ ok: false, retryAfterSeconds: expect.any(Number) });

  await fixture.verify(await fixture.attempt(id, buyer));
  expect((await fixture.status(id)).state).toBe("processing");
});

test("two hundred garbage confirms, ten at a time, leave three waiting attempts", async () => {
  const id = await fixture.create();
  const buyer = await fundBuyer(chain);
  const [option] = await fixture.offer(id, buyer);
  if (!option) throw new Error("no option");
  const seeds = Array.from({ length: 200 }, (_, seed) => seed);
  const answers = await mapConcurrently(seeds, 10, (seed) => fixture.confirm(id, option.id, garbage(seed)));
  expect(answers.filter(({ ok }) => ok)).toHaveLength(3);
  expect(await rowsOf(fixture, id)).toHaveLength(3);
  await fixture.verify(await fixture.attempt(id, buyer));
  expect((await fixture.status(id)).state).toBe("processing");
});

test("garbage confirms for many accounts leave at most thirty attempts, and the first confirm of another account is accepted", async () => {
  const id = await fixture.create();
  const options = await fixture.offer(id, ...(await fundBuyers(chain, 6)));
  for (const option of options) await flood(fixture, id, option.id, 10);
  expect((await rowsOf(fixture, id)).length).toBeLessThanOrEqual(30);
  const [late] = await fixture.offer(id, await fundBuyer(chain));
  expect(await fixture.confirm(id, late?.id ?? "", garbage(0))).toMatchObject({ ok: true });
});

test("a payment keeps ten attempts of one account, even if each is a different spelling of a valid signature", async () => {
  const id = await fixture.create();
  const buyer = await fundBuyer(chain);
  const [option] = await fixture.offer(id, buyer);
  if (!option) throw new Error("no option");
  const [signed] = await signOption(option, buyer);
  const signature = String(signed?.data[0]);
  // Hex digits are case-insensitive, so one signature has many spellings: as many as it has letters.
  const texts = Array.from({ length: 130 }, (_, index) => {
    const at = 2 + index;
    return signature.slice(0, at) + signature.slice(at).toUpperCase();
  });
  const answers = await mapConcurrently([...new Set(texts)], 10, (text) =>
    fixture.confirm(id, option.id, [{ type: "walletRpc", data: [text] }]),
  );
  expect(await rowsOf(fixture, id)).toHaveLength(10);
  expect(answers.filter(({ ok }) => !ok)).not.toHaveLength(0);
});

test("a repeated refused confirm is verified again a few times at once, then once every ten seconds", async () => {
  const id = await fixture.create();
  const [option] = await fixture.offer(id, await fundBuyer(chain));
  const count = async () => {
    fixture.enqueued.length = 0;
    for (let round = 0; round < 20; round += 1) {
      const answer = await fixture.confirm(id, option?.id ?? "", garbage(1));
      if (answer.ok) await fixture.verify(answer.value.attemptId ?? "");
    }
    return fixture.enqueued.filter(({ queue }) => queue === "verify-contract-wallet").length;
  };
  expect(await count()).toBe(4);
  fixture.clock.advance(11_000);
  expect(await count()).toBe(1);
});

test("a refused attempt that a later confirm has evicted is still refused for the request that waits for it", async () => {
  const own = await makeMerchantFixture(chain);
  own.clock.stop();
  const id = await own.create();
  const [option] = await own.offer(id, await fundBuyer(chain));
  await flood(own, id, option?.id ?? "", 10);
  const before = await rowsOf(own, id);
  own.clock.advance(61_000);
  expect(await own.confirm(id, option?.id ?? "", garbage(10))).toMatchObject({ ok: true });
  const kept = (await rowsOf(own, id)).map((row) => row.id);
  const gone = before.filter((row) => !kept.includes(row.id));
  expect(gone).toMatchObject([{ state: "refused" }]);
  expect(await own.verificationResult(gone[0]?.id ?? "")).toEqual({ refused: "the authorization was refused" });
});

test("the cleanup deletes refused attempts and their wallet results after a day and keeps verified attempts", async () => {
  const own = await makeMerchantFixture(chain);
  const [kept, dropped] = [await own.create(), await own.create()];
  await own.verify(await own.attempt(kept, await fundBuyer(chain)));
  const [option] = await own.offer(dropped, await fundBuyer(chain));
  await flood(own, dropped, option?.id ?? "", 4);
  own.clock.advance(23 * 3_600_000);
  expect(await cleanUp(own.deps)).toMatchObject({ attempts: 0 });
  own.clock.advance(2 * 3_600_000);
  expect(await cleanUp(own.deps)).toMatchObject({ attempts: 4 });
  expect(await rowsOf(own, dropped)).toEqual([]);
  expect(await rowsOf(own, kept)).toMatchObject([{ state: "verified" }]);
});

test("a watcher finds a valid signature among garbage attempts and remakes the transfer after a reorg", async () => {
  const own = await makeMerchantFixture(chain, { change: { finality: { blocks: 30 } } });
  const id = await own.create();
  const buyer = await fundBuyer(chain);
  const attempt = await own.attempt(id, buyer);
  const option = await own.db
    .selectFrom("payment_option")
    .selectAll()
    .where("payment_id", "=", id)
    .executeTakeFirstOrThrow();
  await flood(own, id, option.id, 30);
  const confirmed = (await rowsOf(own, id)).find((one) => one.id === attempt);
  if (!confirmed) throw new Error("the attempt is gone");
  const [{ data }] = confirmed.results as [{ data: [Hex] }];
  await own.watch();
  const reorg = await prepareReorg(chain);
  await relayByThirdParty(chain, encodeTransfer(toAuthorization(readEvmRow(option)), data[0]));
  await own.watch();
  expect(await own.transfers()).toMatchObject([{ state: "included", signature: expect.any(Buffer) }]);
  await reorg();
  await own.watch();
  expect(await own.transfers()).toMatchObject([{ state: "ready" }]);
});
