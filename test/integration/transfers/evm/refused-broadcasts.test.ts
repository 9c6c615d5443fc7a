import type { Hex } from "viem";
import { expect, test } from "vitest";
import { fundBuyer, fundBuyers, startChain, type TestChain, transfersTo } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture, type TransfersFixture } from "../../../support/transfers-fixture.ts";

const ROUNDS = 25;
const isSend = ({ method }: { method: string }) => method === "eth_sendRawTransaction";

/** Runs the lane and its watcher, two seconds apart as the sweep does, until every transfer is confirmed. */
async function drain(fixture: TransfersFixture, ids: readonly string[], within = 30_000): Promise<void> {
  for (let passed = 0; passed < within; passed += 2_000) {
    await fixture.relay();
    await fixture.watch();
    if ((await fixture.statesOf(ids)).every((state) => state === "confirmed")) return;
    fixture.clock.advance(2_000);
  }
}

/** Expects that our own mined bytes use every nonce without a gap, and that every transfer was made once. */
async function expectNoGap(chain: TestChain, fixture: TransfersFixture, ids: readonly string[]): Promise<void> {
  expect(new Set(await fixture.statesOf(ids))).toEqual(new Set(["confirmed"]));
  const used = await chain.client.getTransactionCount({ address: chain.keys.lanes[0]?.address as Hex });
  const { next_nonce: next } = await fixture.lane();
  expect(next).toBe(used);
  const landed = (await fixture.transactions()).filter(({ state }) => state === "final").map(({ nonce }) => nonce);
  expect(landed).toEqual(Array.from({ length: used }, (_, nonce) => nonce));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(ids.length);
}

test("a lane whose sends are refused for a minute while payments arrive then pays all of them in order, by itself", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change: { batchGas: 400_000 } });
  const buyers = await fundBuyers(chain, 20);
  proxy.fail((call) => (isSend(call) ? { code: -32_000, message: "nonce too high" } : undefined));
  const ids: string[] = [];
  for (const buyer of buyers) {
    ids.push((await fixture.sign(buyer)).id);
    await fixture.relay();
    await fixture.watch();
    fixture.clock.advance(3_000);
  }
  expect((await fixture.transactions()).map(({ nonce, state }) => [nonce, state])).toEqual([[0, "broadcast"]]);
  expect(proxy.calls["eth_sendRawTransaction"], "it is retried all the time").toBeGreaterThan(10);

  proxy.fail(undefined);
  await drain(fixture, ids);
  await expectNoGap(chain, fixture, ids);
  const blocks = new Map(fixture.confirmed.map(({ id, block_number }) => [id, block_number]));
  const inOrder = ids.map((id) => blocks.get(id) ?? 0);
  expect(inOrder).toEqual(inOrder.toSorted((a, b) => a - b));
});

test.each(["the signer fails", "the database refuses the bytes", "the send is refused", "the answer is lost"])(
  "a lane recovers by itself and leaves no nonce unused when %s repeatedly between a nonce and its broadcast",
  async (failure) => {
    const chain = await startChain();
    const proxy = await startFaultProxy({ target: chain.url });
    const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
    const [signer] = fixture.deps.keys.get(chain.id)?.lanes ?? [];
    if (!signer) throw new Error("the chain has no lane");
    const sign = signer.signTransaction;
    const inject = async (on: boolean) => {
      if (failure === "the signer fails")
        signer.signTransaction = on ? () => Promise.reject(new Error("the KMS is away")) : sign;
      else if (failure === "the database refuses the bytes")
        await execute(fixture.databaseUrl, on ? makeTrigger : "drop trigger refuse on transaction");
      else if (failure === "the send is refused")
        proxy.fail((call) => (on && isSend(call) ? { code: -32_000, message: "internal error" } : undefined));
      else proxy.dropAnswers(on ? isSend : undefined);
    };
    const ids: string[] = [];
    const buyer = await fundBuyer(chain);
    for (let round = 0; round < ROUNDS; round += 1) {
      ids.push((await fixture.sign(buyer)).id);
      await inject(true);
      await fixture.relay().catch(() => undefined);
      await inject(false);
      // The watcher runs in between now and then.
      if (round % 3 === 0) await fixture.watch();
      fixture.clock.advance(500);
    }
    await drain(fixture, ids);
    await expectNoGap(chain, fixture, ids);
  },
);

const makeTrigger = `
  create or replace function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'no space left' using errcode = '53100'; end $$;
  create trigger refuse before insert on transaction for each row execute function refuse()`;
