import { describe, expect, test } from "vitest";
import { unassignTransfers } from "../../../../db/queries/transfers.ts";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { makeTransfersFixture, relayByThirdParty, type TransfersFixture } from "../../../support/transfers-fixture.ts";

/** Runs `happen` between the moment a lane has chosen its transfers and the moment its transaction is signed. */
function beforeNextSignature(fixture: TransfersFixture, chain: string, happen: () => Promise<unknown>): void {
  const keys = fixture.deps.keys.get(chain);
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
  Object.assign(fixture.deps, { keys: new Map([[chain, { ...keys, lanes }]]) });
}

describe("an event while a lane's transaction is signed", () => {
  test("a worker that loses its lane while it signs stores and sends nothing, and the next worker sends the transfer", async () => {
    const chain = await startChain();
    const fixture = await makeTransfersFixture(chain);
    const one = await fixture.sign(await fundBuyer(chain));
    await fixture.watch();
    const before = await chain.client.getBlockNumber();
    beforeNextSignature(fixture, chain.id, () =>
      execute(fixture.databaseUrl, "update lane set fence = fence + 1, owner = 'another worker'"),
    );
    await fixture.relay();
    expect(await fixture.transactions()).toEqual([]);
    expect(await chain.client.getBlockNumber()).toBe(before);
    expect(await fixture.statesOf([one.id])).toEqual(["ready"]);
    await execute(fixture.databaseUrl, "update lane set owner = null, lease_until = null");
    await fixture.relay();
    await fixture.watch();
    expect(fixture.confirmed).toMatchObject([{ id: one.id }]);
    expect((await fixture.transactions()).map(({ nonce }) => nonce)).toEqual([0]);
  });

  test("a worker stores and sends nothing for a transfer that a third party relays while the worker signs", async () => {
    const chain = await startChain();
    const fixture = await makeTransfersFixture(chain);
    const one = await fixture.sign(await fundBuyer(chain));
    await fixture.watch();
    let hash: string | undefined;
    beforeNextSignature(fixture, chain.id, async () => {
      hash = await relayByThirdParty(chain, one.call);
      await fixture.watch();
    });
    await fixture.relay();
    expect(await fixture.transactions()).toEqual([]);
    expect(fixture.confirmed).toMatchObject([{ id: one.id, tx_hash: hash }]);
    expect((await fixture.lane()).next_nonce).toBe(0);
  });
});

describe("a payer that is no longer served", () => {
  test("a transfer that a lane has sent before is not declined, because its bytes may still land", async () => {
    const chain = await startChain();
    const fixture = await makeTransfersFixture(chain);
    const one = await fixture.sign(await fundBuyer(chain));
    await chain.client.setAutomine(false);
    await fixture.relay();
    expect(await fixture.statesOf([one.id])).toEqual(["assigned"]);
    await unassignTransfers(fixture.db, { ids: [one.id], reason: "left no trace", now: fixture.clock.now() });
    fixture.clock.advance(60_000);
    const [row] = await fixture.rowsOf([one.id]);
    fixture.screened.add(row?.payer ?? "");
    await fixture.relay();
    expect(fixture.declined).toEqual([]);
    expect(await fixture.statesOf([one.id])).toEqual(["ready"]);
    await mine(chain);
    await chain.client.setAutomine(true);
    await fixture.watch();
    expect(fixture.confirmed).toMatchObject([{ id: one.id }]);
  });

  test("a transfer that was declined stays ended, and a third party's relay of it is an unmatched movement", async () => {
    const chain = await startChain();
    const fixture = await makeTransfersFixture(chain);
    const one = await fixture.sign(await fundBuyer(chain));
    const [row] = await fixture.rowsOf([one.id]);
    fixture.screened.add(row?.payer ?? "");
    await fixture.relay();
    expect(await fixture.statesOf([one.id])).toEqual(["ended"]);
    const hash = await relayByThirdParty(chain, one.call);
    await fixture.watch();
    expect(await fixture.observations()).toMatchObject([{ tx_hash: hash, transfer_id: null }]);
    expect(fixture.unmatched).toMatchObject([{ tx_hash: hash }]);
    expect(fixture.confirmed).toEqual([]);
  });
});
