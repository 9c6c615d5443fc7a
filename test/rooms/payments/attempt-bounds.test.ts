import type { Hex } from "viem";
import { expect, test } from "vitest";
import { encodeTransfer } from "../../../chains/evm/eip3009.ts";
import { cleanUp } from "../../../payments/clean.ts";
import { toAuthorization } from "../../../transfers/authorization.ts";
import { relayByStranger } from "../../support/carry.ts";
import { fundBuyer, fundBuyers, startChain } from "../../support/chain.ts";
import { remember } from "../../support/remember.ts";
import { makeTill, signOption, type Till } from "../../support/till.ts";

const chain = await startChain();
const till = await makeTill(chain);

/** A signature of the right form that nobody has made. */
const garbage = (seed: number) => [
  { type: "walletRpc" as const, data: [`0x${"1b".repeat(32)}${seed.toString(16).padStart(64, "0")}1b`] },
];
const rowsOf = (own: Till, paymentId: string) =>
  own.db.selectFrom("attempt").selectAll().where("payment_id", "=", paymentId).execute();
const eventsOf = (own: Till) => own.db.selectFrom("event").select("id").where("machine", "=", "attempt").execute();

/** Confirms with garbage, verified a few at a time; gives the answers that were no attempt. */
async function flood(own: Till, paymentId: string, optionId: string, count: number) {
  const kept: string[] = [];
  for (let seed = 0; seed < count; seed += 1) {
    const answer = await own.confirm(paymentId, optionId, garbage(seed));
    if (answer.ok) await own.verify(answer.value.attemptId ?? "");
    else kept.push(answer.code);
  }
  return kept;
}

test("two hundred garbage confirms leave ten attempts, and the buyer whose option they are for pays", async () => {
  const id = await till.create();
  const buyer = await fundBuyer(chain);
  const [option] = await till.offer(id, buyer);
  if (!option) throw new Error("no option");
  const before = (await eventsOf(till)).length;
  const refused = await flood(till, id, option.id, 200);
  expect(new Set(refused)).toEqual(new Set(["rate_limited"]));
  expect(await rowsOf(till, id)).toHaveLength(10);
  expect((await eventsOf(till)).length - before).toBeLessThanOrEqual(20);
  const answer = await till.confirm(id, option.id, garbage(1_000));
  expect(answer).toMatchObject({ ok: false, retryAfterSeconds: expect.any(Number) });

  await till.verify(await till.attempt(id, buyer));
  expect((await till.status(id)).state).toBe("processing");
});

test("two hundred garbage confirms at the same moment leave three that wait", async () => {
  const id = await till.create();
  const buyer = await fundBuyer(chain);
  const [option] = await till.offer(id, buyer);
  if (!option) throw new Error("no option");
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, seed) => till.confirm(id, option.id, garbage(seed))),
  );
  expect(answers.filter(({ ok }) => ok)).toHaveLength(3);
  expect(await rowsOf(till, id)).toHaveLength(3);
  await till.verify(await till.attempt(id, buyer));
  expect((await till.status(id)).state).toBe("processing");
});

test("garbage for many accounts leaves thirty attempts, and a first confirm of another account is still taken", async () => {
  const id = await till.create();
  const options = await till.offer(id, ...(await fundBuyers(chain, 6)));
  for (const option of options) await flood(till, id, option.id, 10);
  expect((await rowsOf(till, id)).length).toBeLessThanOrEqual(30);
  const [late] = await till.offer(id, await fundBuyer(chain));
  expect(await till.confirm(id, late?.id ?? "", garbage(0))).toMatchObject({ ok: true });
});

test("an account's own good signatures are kept ten of, however they are written", async () => {
  const id = await till.create();
  const buyer = await fundBuyer(chain);
  const [option] = await till.offer(id, buyer);
  if (!option) throw new Error("no option");
  const [signed] = await signOption(option, buyer);
  const signature = String(signed?.data[0]);
  // Hex digits in both cases: as many texts of one signature as anybody likes.
  const texts = Array.from({ length: 60 }, (_, index) => {
    const at = 2 + index;
    return signature.slice(0, at) + signature.slice(at).toUpperCase();
  });
  const answers = await Promise.all(
    [...new Set(texts)].map((text) => till.confirm(id, option.id, [{ type: "walletRpc", data: [text] }])),
  );
  expect(await rowsOf(till, id)).toHaveLength(10);
  expect(answers.filter(({ ok }) => !ok)).not.toHaveLength(0);
});

test("the same refused confirm is verified anew a few times at once, and then every ten seconds", async () => {
  const id = await till.create();
  const [option] = await till.offer(id, await fundBuyer(chain));
  const count = async () => {
    till.rung.length = 0;
    for (let turn = 0; turn < 20; turn += 1) {
      const answer = await till.confirm(id, option?.id ?? "", garbage(1));
      if (answer.ok) await till.verify(answer.value.attemptId ?? "");
    }
    return till.rung.filter(({ queue }) => queue === "verify-wallet").length;
  };
  expect(await count()).toBe(4);
  till.clock.advance(11_000);
  expect(await count()).toBe(1);
});

test("refused attempts are deleted after a day with what wallets handed over, and verified ones stay", async () => {
  const own = await makeTill(chain);
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

test("garbage beside a confirm does not hide its signature from the watcher: after a reorg we make the transfer", async () => {
  const own = await makeTill(chain, { change: { finality: { blocks: 30 } } });
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
  const reorg = await remember(chain);
  await relayByStranger(chain, encodeTransfer(toAuthorization(option), data[0]));
  await own.watch();
  expect(await own.transfers()).toMatchObject([{ state: "included", signature: expect.any(Buffer) }]);
  await reorg();
  await own.watch();
  expect(await own.transfers()).toMatchObject([{ state: "ready" }]);
});
