import type { Hex } from "viem";
import { describe, expect, test } from "vitest";
import { encodeTransfer } from "../../../../chains/evm/eip3009.ts";
import { readEvmRow } from "../../../../db/chain-families.ts";
import { createVerify } from "../../../../payments/lifecycle/verify-batches.ts";
import { toAuthorization } from "../../../../transfers/evm/authorization-calls.ts";
import { fundBuyer, fundBuyers, mine, sendUsdc, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeMerchantFixture, signOption, unwrap } from "../../../support/merchant-fixture.ts";
import { relayByThirdParty } from "../../../support/transfers-fixture.ts";

const chain = await startChain();
const proxy = await startFaultProxy({ target: chain.url });
const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url] });

describe("attempts", () => {
  test("a valid attempt makes the payment processing, writes one transfer and enqueues its relay job", async () => {
    const buyer = await fundBuyer(chain);
    const id = await fixture.create(100n);
    const attempt = await fixture.attempt(id, buyer);
    expect(await fixture.verificationResult(attempt)).toBe("waiting");
    expect(fixture.enqueued.filter(({ queue }) => queue === "verify-signature").at(-1)?.job.data).toEqual({
      chain: chain.id,
      attemptIds: [attempt],
    });
    await fixture.verify(attempt);
    expect(await fixture.verificationResult(attempt)).toBe("verified");
    expect((await fixture.status(id)).state).toBe("processing");
    const transfer = (await fixture.transfers()).filter((row) => row.payment_id === id);
    expect(transfer).toMatchObject([{ state: "ready", amount: 1_000_000n, payer: buyer.address.toLowerCase() }]);
    expect(fixture.enqueued.at(-1)).toMatchObject({ queue: "relay-transfers" });
    expect(fixture.announced).toContain(id);
  });

  test("an attempt that six jobs verify concurrently makes one transfer", async () => {
    const id = await fixture.create();
    const attempt = await fixture.attempt(id, await fundBuyer(chain));
    await Promise.all(Array.from({ length: 6 }, () => fixture.verify(attempt)));
    expect(await fixture.verificationResult(attempt)).toBe("verified");
    expect((await fixture.transfers()).filter((row) => row.payment_id === id)).toHaveLength(1);
  });

  test("of five concurrent attempts for one payment, one is verified, four are refused, and one transfer is made", async () => {
    const id = await fixture.create();
    const attempts = await Promise.all((await fundBuyers(chain, 5)).map((buyer) => fixture.attempt(id, buyer)));
    await Promise.all(attempts.map((attempt) => fixture.verify(attempt)));
    const results = await Promise.all(attempts.map(fixture.verificationResult));
    expect(results.filter((result) => result === "verified")).toHaveLength(1);
    expect(results.filter((result) => typeof result === "object")).toHaveLength(4);
    expect((await fixture.transfers()).filter((row) => row.payment_id === id)).toHaveLength(1);
  });

  test("the earlier of two attempts in one batch pays", async () => {
    const id = await fixture.create();
    const [first, second] = await fundBuyers(chain, 2);
    if (!first || !second) throw new Error("no buyers");
    const early = await fixture.attempt(id, first);
    fixture.clock.advance(10);
    const late = await fixture.attempt(id, second);
    await fixture.verify(late, early);
    expect(await fixture.verificationResult(early)).toBe("verified");
    expect(await fixture.verificationResult(late)).toMatchObject({ refused: expect.any(String) });
  });

  test("a refused attempt leaves the payment open, and the buyer can confirm again after topping up", async () => {
    const buyer = await fundBuyer(chain, 1_000_000n);
    const id = await fixture.create(100n);
    const [option] = await fixture.offer(id, buyer);
    if (!option) throw new Error("no option");
    await sendUsdc(chain, buyer, chain.keys.lanes[0]?.address as Hex, 1n);
    const results = await signOption(option, buyer);
    const { attemptId } = unwrap(await fixture.confirm(id, option.id, results));
    await fixture.verify(attemptId ?? "");
    expect(await fixture.verificationResult(attemptId ?? "")).toMatchObject({
      refused: expect.stringContaining("exceeds balance"),
    });
    expect((await fixture.status(id)).state).toBe("requires_action");

    await sendUsdc(chain, await fundBuyer(chain), buyer.address, 1n);
    expect(unwrap(await fixture.confirm(id, option.id, results)).attemptId).toBe(attemptId);
    const last = fixture.enqueued.at(-1);
    expect(last?.job, "a new job, which the id of the first job does not block").toMatchObject({ retry: 1 });
    await fixture.verify(attemptId ?? "");
    expect((await fixture.status(id)).state).toBe("processing");
  });

  test("an attempt with a signature for another payment of the same amount is refused, and the payment can still be paid", async () => {
    const buyer = await fundBuyer(chain);
    const [one, two] = [await fixture.create(), await fixture.create()];
    const [option] = await fixture.offer(one, buyer);
    const [other] = await fixture.offer(two, buyer);
    if (!option || !other) throw new Error("no option");
    const { attemptId } = unwrap(await fixture.confirm(two, other.id, await signOption(option, buyer)));
    await fixture.verify(attemptId ?? "");
    expect(await fixture.verificationResult(attemptId ?? "")).toMatchObject({
      refused: expect.stringContaining("over this payment"),
    });
    await fixture.verify(await fixture.attempt(two, buyer));
    expect((await fixture.status(two)).state).toBe("processing");
  });

  test("an attempt waits while the chain is unreachable and is verified afterwards", async () => {
    const id = await fixture.create();
    const attempt = await fixture.attempt(id, await fundBuyer(chain));
    proxy.refuse(true);
    await expect(fixture.verify(attempt)).rejects.toMatchObject({ transient: true });
    proxy.refuse(false);
    expect(await fixture.verificationResult(attempt)).toBe("waiting");
    expect((await fixture.status(id)).state).toBe("requires_action");
    await fixture.verify(attempt);
    expect(await fixture.verificationResult(attempt)).toBe("verified");
  });

  test("sixteen concurrent equal confirms make one attempt, and a confirm after the payment's end makes none", async () => {
    const buyer = await fundBuyer(chain);
    const id = await fixture.create();
    const [option] = await fixture.offer(id, buyer);
    if (!option) throw new Error("no option");
    const results = await signOption(option, buyer);
    const answers = await Promise.all(Array.from({ length: 16 }, () => fixture.confirm(id, option.id, results)));
    const ids = new Set(answers.map((answer) => unwrap(answer).attemptId));
    expect(ids.size).toBe(1);
    await fixture.verify([...ids][0] ?? "");
    expect(unwrap(await fixture.confirm(id, option.id, results)).attemptId).toBeNull();
    const others = await signOption(option, await fundBuyer(chain));
    expect(await fixture.confirm(id, option.id, others)).toMatchObject({ ok: false, code: "invalid_state" });
  });

  test("a confirm with another payment's option or malformed results is refused and writes nothing", async () => {
    const buyer = await fundBuyer(chain);
    const [one, two] = [await fixture.create(), await fixture.create()];
    const [option] = await fixture.offer(one, buyer);
    const [other] = await fixture.offer(two, buyer);
    if (!option || !other) throw new Error("no option");
    const results = await signOption(option, buyer);
    const refused = { ok: false, code: "invalid_params" };
    expect(await fixture.confirm(one, other.id, results)).toMatchObject(refused);
    expect(await fixture.confirm(one, option.id, [])).toMatchObject(refused);
    expect(await fixture.confirm(one, option.id, [...results, ...results])).toMatchObject(refused);
    expect(await fixture.confirm(one, option.id, [{ type: "walletRpc", data: ["0x12"] }])).toMatchObject(refused);
    const written = await fixture.db.selectFrom("attempt").select("id").where("payment_id", "in", [one, two]).execute();
    expect(written).toEqual([]);
  });

  test("an attempt whose authorization a third party already relayed pays with that transaction", async () => {
    const buyer = await fundBuyer(chain);
    const id = await fixture.create();
    const attempt = await fixture.attempt(id, buyer);
    const option = await fixture.db
      .selectFrom("payment_option")
      .selectAll()
      .where("payment_id", "=", id)
      .executeTakeFirstOrThrow();
    const row = await fixture.db.selectFrom("attempt").selectAll().where("id", "=", attempt).executeTakeFirstOrThrow();
    const [{ data }] = row.results as [{ data: [Hex] }];
    const before = (await transfersTo(chain, chain.keys.treasury.address)).length;
    const hash = await relayByThirdParty(chain, encodeTransfer(toAuthorization(readEvmRow(option)), data[0]));
    await fixture.watch();
    await fixture.verify(attempt);
    await fixture.relay();
    await mine(chain);
    await fixture.watch();
    expect(await fixture.status(id)).toMatchObject({ state: "succeeded", info: { txId: hash } });
    const paid = (await transfersTo(chain, chain.keys.treasury.address)).slice(before);
    expect(paid.filter((log) => log.args.from === buyer.address)).toHaveLength(1);
  });
});

test("an attempt that several processes and jobs verify is counted once, with its final outcome", async () => {
  const own = await makeMerchantFixture(chain);
  const attempt = await own.attempt(await own.create(), await fundBuyer(chain));
  const verifiers = Array.from({ length: 6 }, () => createVerify(own.deps));
  await Promise.all([...verifiers, ...verifiers].map((verify) => verify(attempt)));
  const counted = (await own.deps.metrics.attempts.get()).values.map(({ labels, value }) => [labels.outcome, value]);
  expect(counted).toEqual([["verified", 1]]);
});
