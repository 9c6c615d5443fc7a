import { describe, expect, test } from "vitest";
import { uncarryTransfers } from "../../../db/transfers.ts";
import { type Carrier, makeCarrier, relayByStranger } from "../../support/carry.ts";
import { fundBuyer, mine, startChain } from "../../support/chain.ts";
import { execute } from "../../support/sql.ts";

/** Runs `happen` between the moment a lane has chosen its transfers and the moment its transaction is signed. */
function beforeNextSignature(carrier: Carrier, chain: string, happen: () => Promise<unknown>): void {
  const keys = carrier.deps.keys.get(chain);
  if (!keys) throw new Error("there are no keys");
  let next: (() => Promise<unknown>) | undefined = happen;
  const lanes = keys.lanes.map((lane) => {
    const signTransaction = async (...args: Parameters<typeof lane.signTransaction>) => {
      const now = next;
      next = undefined;
      await now?.();
      return lane.signTransaction(...args);
    };
    return { ...lane, signTransaction } as typeof lane;
  });
  Object.assign(carrier.deps, { keys: new Map([[chain, { ...keys, lanes }]]) });
}

describe("an event while a lane's transaction is signed", () => {
  test("a worker that loses its lane while it signs stores and sends nothing, and the next worker sends the transfer", async () => {
    const chain = await startChain();
    const carrier = await makeCarrier(chain);
    const one = await carrier.sign(await fundBuyer(chain));
    await carrier.watch();
    const before = await chain.client.getBlockNumber();
    beforeNextSignature(carrier, chain.id, () =>
      execute(carrier.databaseUrl, "update lane set fence = fence + 1, owner = 'another worker'"),
    );
    await carrier.relay();
    expect(await carrier.transactions()).toEqual([]);
    expect(await chain.client.getBlockNumber()).toBe(before);
    expect(await carrier.statesOf([one.id])).toEqual(["ready"]);
    await execute(carrier.databaseUrl, "update lane set owner = null, lease_until = null");
    await carrier.relay();
    await carrier.watch();
    expect(carrier.confirmed).toMatchObject([{ id: one.id }]);
    expect((await carrier.transactions()).map(({ nonce }) => nonce)).toEqual([0]);
  });

  test("a worker stores and sends nothing for a transfer that a third party relays while the worker signs", async () => {
    const chain = await startChain();
    const carrier = await makeCarrier(chain);
    const one = await carrier.sign(await fundBuyer(chain));
    await carrier.watch();
    let hash: string | undefined;
    beforeNextSignature(carrier, chain.id, async () => {
      hash = await relayByStranger(chain, one.call);
      await carrier.watch();
    });
    await carrier.relay();
    expect(await carrier.transactions()).toEqual([]);
    expect(carrier.confirmed).toMatchObject([{ id: one.id, tx_hash: hash }]);
    expect((await carrier.lane()).next_nonce).toBe(0);
  });
});

describe("a payer that is no longer served", () => {
  test("a transfer that a lane has sent before is not declined, because its bytes may still land", async () => {
    const chain = await startChain();
    const carrier = await makeCarrier(chain);
    const one = await carrier.sign(await fundBuyer(chain));
    await chain.client.setAutomine(false);
    await carrier.relay();
    expect(await carrier.statesOf([one.id])).toEqual(["carried"]);
    await uncarryTransfers(carrier.db, { ids: [one.id], reason: "left no trace", now: carrier.clock.now() });
    carrier.clock.advance(60_000);
    const [row] = await carrier.rowsOf([one.id]);
    carrier.screened.add(row?.payer ?? "");
    await carrier.relay();
    expect(carrier.declined).toEqual([]);
    expect(await carrier.statesOf([one.id])).toEqual(["ready"]);
    await mine(chain);
    await chain.client.setAutomine(true);
    await carrier.watch();
    expect(carrier.confirmed).toMatchObject([{ id: one.id }]);
  });

  test("a transfer that was declined stays ended, and a third party's relay of it is an unmatched movement", async () => {
    const chain = await startChain();
    const carrier = await makeCarrier(chain);
    const one = await carrier.sign(await fundBuyer(chain));
    const [row] = await carrier.rowsOf([one.id]);
    carrier.screened.add(row?.payer ?? "");
    await carrier.relay();
    expect(await carrier.statesOf([one.id])).toEqual(["ended"]);
    const hash = await relayByStranger(chain, one.call);
    await carrier.watch();
    expect(await carrier.sightings()).toMatchObject([{ tx_hash: hash, transfer_id: null }]);
    expect(carrier.stray).toMatchObject([{ tx_hash: hash }]);
    expect(carrier.confirmed).toEqual([]);
  });
});
