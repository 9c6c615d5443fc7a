import { numberToHex } from "viem";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { makeCarrier } from "../../support/carry.ts";
import { fundBuyer, fundBuyers, mine, startChain, transfersTo } from "../../support/chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";

const HUGE = 1_000_000;
const TOO_LOW = { code: -32_000, message: "nonce too low" };

/** A chain whose first endpoint can be made to lie about nonces; `honest` is a second one beside it. */
async function makeLiar({ honest }: { honest: boolean }) {
  const chain = await startChain();
  const refusing = await startFaultProxy({ target: chain.url });
  const liar = await startAlteringProxy({ target: refusing.url });
  const carrier = await makeCarrier(chain, { rpcUrls: honest ? [liar.url, chain.url] : [liar.url] });
  const lie = (on: boolean) => {
    refusing.fail(({ method }) => (on && method === "eth_sendRawTransaction" ? TOO_LOW : undefined));
    liar.alter((method, _params, result) => (on && method === "eth_getTransactionCount" ? numberToHex(HUGE) : result));
  };
  /** What is sent reaches no pool. */
  const refuseSends = (on: boolean) =>
    refusing.fail(({ method }) =>
      on && method === "eth_sendRawTransaction" ? { code: -32_000, message: "txpool is full" } : undefined,
    );
  const nextNonce = async () =>
    (await carrier.db.selectFrom("lane").select("next_nonce").orderBy("next_nonce", "desc").execute())[0]?.next_nonce;
  /** Passes of the watcher and of the lanes, while blocks and time go on. */
  const goOn = async (turns: number) => {
    for (let turn = 0; turn < turns; turn += 1) {
      carrier.clock.advance(60_000);
      await mine(chain, 2);
      await carrier.watch().catch(() => undefined);
      await carrier.relay();
    }
  };
  return { chain, carrier, lie, refuseSends, nextNonce, goOn };
}

test("a huge nonce that one endpoint makes up does not move a lane while another one says the true one", async () => {
  const { chain, carrier, lie, nextNonce, goOn } = await makeLiar({ honest: true });
  lie(true);
  const one = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  expect(await nextNonce()).toBe(1);
  lie(false);
  await goOn(3);
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("the only endpoint of a chain moves a lane by its window at most, and the lane comes back when it says the truth", async () => {
  const { chain, carrier, lie, nextNonce, goOn } = await makeLiar({ honest: false });
  const [stuck, first, second] = await carrier.signAll(await fundBuyers(chain, 3));
  if (!stuck || !first || !second) throw new Error("nothing was signed");
  lie(true);
  await carrier.relay();
  const { laneWindow } = carrier.evm.network;
  expect(await nextNonce()).toBeLessThanOrEqual(laneWindow + 1);
  lie(false);
  // What is signed now stands above a gap that nothing fills.
  const late = await carrier.sign(await fundBuyer(chain));
  await goOn(6);
  const ids = [stuck.id, first.id, second.id, late.id];
  expect(await carrier.statesOf(ids)).toEqual(ids.map(() => "confirmed"));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(ids.length);
});

test.each([
  ["still has", false],
  ["never had", true],
])(
  "a lane that began at a nonce which an endpoint had made up is led back and reaches it again, while the pool %s the old bytes",
  async (_what, isRefused) => {
    const { chain, carrier, refuseSends, nextNonce, goOn } = await makeLiar({ honest: true });
    await carrier.db.updateTable("lane").set({ next_nonce: 5 }).execute();
    const one = await carrier.sign(await fundBuyer(chain));
    refuseSends(isRefused);
    await carrier.relay();
    refuseSends(false);
    expect((await carrier.transactions()).map(({ nonce }) => nonce)).toEqual([5]);
    await goOn(4);
    expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
    expect(await nextNonce()).toBe(1);
    for (const buyer of await fundBuyers(chain, 6)) {
      const { id } = await carrier.sign(buyer);
      await carrier.relay();
      for (let turn = 0; turn < 10 && (await carrier.statesOf([id]))[0] !== "confirmed"; turn += 1) await goOn(1);
      expect(await carrier.statesOf([id])).toEqual(["confirmed"]);
    }
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(7);
  },
);

test("a lane is not led back by an endpoint that lags, nor while nonces of ours are waiting for a block", async () => {
  const { chain, carrier, nextNonce, goOn } = await makeLiar({ honest: false });
  await chain.client.setAutomine(false);
  const [one, other] = await carrier.signAll(await fundBuyers(chain, 2));
  await carrier.relay();
  const before = await nextNonce();
  carrier.clock.advance(600_000);
  await carrier.watch();
  expect(await nextNonce()).toBe(before);
  await goOn(2);
  expect(await carrier.statesOf([one?.id ?? "", other?.id ?? ""])).toEqual(["confirmed", "confirmed"]);
});
