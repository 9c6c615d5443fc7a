import { numberToHex } from "viem";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, fundBuyers, mine, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const HUGE = 1_000_000;
const TOO_LOW = { code: -32_000, message: "nonce too low" };

/** A chain whose first endpoint can report false nonces; with `honest` there is a second endpoint. */
async function makeDishonestEndpoint({ honest }: { honest: boolean }) {
  const chain = await startChain();
  const refusing = await startFaultProxy({ target: chain.url });
  const dishonest = await startAlteringProxy({ target: refusing.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: honest ? [dishonest.url, chain.url] : [dishonest.url] });
  const reportFalseNonces = (on: boolean) => {
    refusing.fail(({ method }) => (on && method === "eth_sendRawTransaction" ? TOO_LOW : undefined));
    dishonest.alter((method, _params, result) =>
      on && method === "eth_getTransactionCount" ? numberToHex(HUGE) : result,
    );
  };
  /** Refuses every broadcast, so that no pool gets it. */
  const refuseSends = (on: boolean) =>
    refusing.fail(({ method }) =>
      on && method === "eth_sendRawTransaction" ? { code: -32_000, message: "txpool is full" } : undefined,
    );
  const nextNonce = async () =>
    (await fixture.db.selectFrom("lane").select("next_nonce").orderBy("next_nonce", "desc").execute())[0]?.next_nonce;
  /** Runs passes of the watcher and the lanes while blocks and time advance. */
  const runPasses = async (count: number) => {
    for (let pass = 0; pass < count; pass += 1) {
      fixture.clock.advance(60_000);
      await mine(chain, 2);
      await fixture.watch().catch(() => undefined);
      await fixture.relay();
    }
  };
  return { chain, fixture, reportFalseNonces, refuseSends, nextNonce, runPasses };
}

test("a huge nonce that one endpoint invents does not move a lane while another endpoint reports the true one", async () => {
  const { chain, fixture, reportFalseNonces, nextNonce, runPasses } = await makeDishonestEndpoint({ honest: true });
  reportFalseNonces(true);
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  expect(await nextNonce()).toBe(1);
  reportFalseNonces(false);
  await runPasses(3);
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("the only endpoint of a chain moves a lane by at most its window, and the lane returns once the endpoint is honest", async () => {
  const { chain, fixture, reportFalseNonces, nextNonce, runPasses } = await makeDishonestEndpoint({ honest: false });
  const [stuck, first, second] = await fixture.signAll(await fundBuyers(chain, 3));
  if (!stuck || !first || !second) throw new Error("nothing was signed");
  reportFalseNonces(true);
  await fixture.relay();
  const { laneWindow } = fixture.evm.network;
  expect(await nextNonce()).toBeLessThanOrEqual(laneWindow + 1);
  reportFalseNonces(false);
  // A transaction that is signed now is above a gap that nothing fills.
  const late = await fixture.sign(await fundBuyer(chain));
  await runPasses(6);
  const ids = [stuck.id, first.id, second.id, late.id];
  expect(await fixture.statesOf(ids)).toEqual(ids.map(() => "confirmed"));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(ids.length);
});

test.each([
  ["still has", false],
  ["never had", true],
])(
  "a lane that began at an invented nonce is moved back and reaches that nonce again, while the pool %s the old bytes",
  async (_what, isRefused) => {
    const { chain, fixture, refuseSends, nextNonce, runPasses } = await makeDishonestEndpoint({ honest: true });
    await fixture.db.updateTable("lane").set({ next_nonce: 5 }).execute();
    const one = await fixture.sign(await fundBuyer(chain));
    refuseSends(isRefused);
    await fixture.relay();
    refuseSends(false);
    expect((await fixture.transactions()).map(({ nonce }) => nonce)).toEqual([5]);
    await runPasses(4);
    expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
    expect(await nextNonce()).toBe(1);
    for (const buyer of await fundBuyers(chain, 6)) {
      const { id } = await fixture.sign(buyer);
      await fixture.relay();
      for (let pass = 0; pass < 10 && (await fixture.statesOf([id]))[0] !== "confirmed"; pass += 1) await runPasses(1);
      expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
    }
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(7);
  },
);

test("a lane is not moved back by a lagging endpoint, nor while its own nonces wait for a block", async () => {
  const { chain, fixture, nextNonce, runPasses } = await makeDishonestEndpoint({ honest: false });
  const [one, other] = await fixture.signAll(await fundBuyers(chain, 2));
  await chain.client.setAutomine(false);
  await fixture.relay();
  const before = await nextNonce();
  fixture.clock.advance(600_000);
  await fixture.watch();
  expect(await nextNonce()).toBe(before);
  await runPasses(2);
  expect(await fixture.statesOf([one?.id ?? "", other?.id ?? ""])).toEqual(["confirmed", "confirmed"]);
});
