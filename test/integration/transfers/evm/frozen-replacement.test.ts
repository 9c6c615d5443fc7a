import { type Hex, parseGwei } from "viem";
import { expect, test } from "vitest";
import { insertTransaction, recordBroadcast } from "../../../../db/queries/transactions.ts";
import { fundBuyer, mine, startChain, type TestChain, transfersTo } from "../../../support/evm-chain.ts";
import { makeTransfersFixture, type TransfersFixture } from "../../../support/transfers-fixture.ts";
import { waitFor } from "../../../support/wait-for.ts";

/** Blocks are slow, so that nothing is replaced before the clock is advanced. */
const change = { blockMs: 10_000 };
const LATER_MS = 20_000;

/** A transaction of a lane that waits in the pool, below the base fee, and is due for its replacement. */
async function startUnderpriced() {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change });
  const one = await fixture.sign(await fundBuyer(chain));
  const later = await fixture.sign(await fundBuyer(chain));
  await fixture.db
    .updateTable("transfer")
    .set({ hold_until: new Date("2100-01-01") })
    .where("id", "=", later.id)
    .execute();
  await chain.client.setAutomine(false);
  await fixture.relay();
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("50") });
  await mine(chain);
  await fixture.watch();
  fixture.clock.advance(LATER_MS);
  return { chain, fixture, one, later };
}

/** Lets the second transfer be sent, and waits until it is confirmed. */
async function sendLater(chain: TestChain, fixture: TransfersFixture, id: string) {
  await fixture.db.updateTable("transfer").set({ hold_until: null }).where("id", "=", id).execute();
  const isConfirmed = async () => {
    fixture.clock.advance(LATER_MS);
    await fixture.watch();
    await fixture.relay();
    await mine(chain);
    return (await fixture.statesOf([id]))[0] === "confirmed";
  };
  await waitFor(isConfirmed, { within: 20_000, what: "the lane's next transfer is confirmed" });
}

/** Mines the lane's only transaction. Sends it again first, because Anvil sets an underpriced one aside. */
async function minePending(chain: TestChain, fixture: TransfersFixture) {
  const [only] = await fixture.transactions();
  await chain.client.dropTransaction({ hash: only?.hash as Hex });
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1n });
  await mine(chain);
  await chain.client.sendRawTransaction({ serializedTransaction: `0x${only?.bytes.toString("hex")}` });
  await mine(chain);
}

test("a watcher that signs a replacement while another one finalizes the original stores nothing, and the lane goes on", async () => {
  const { chain, fixture, one, later } = await startUnderpriced();
  const { databaseUrl, clock } = fixture;
  const other = await makeTransfersFixture(chain, { change, databaseUrl, clock });
  const held = Promise.withResolvers<void>();
  let asked = 0;
  for (const lane of fixture.deps.keys.get(chain.id)?.lanes ?? []) {
    const sign = lane.signTransaction;
    lane.signTransaction = async (...args: Parameters<typeof sign>) => {
      asked += 1;
      await held.promise;
      return sign(...args);
    };
  }
  const frozen = fixture.watch();
  await waitFor(() => asked > 0, { within: 10_000, what: "a replacement is signed" });
  await minePending(chain, fixture);
  // As if the first watcher's process had been stopped for longer than its lease. It is not, and may renew the lease.
  const takeOver = async () => {
    await other.db
      .updateTable("chain_cursor")
      .set({ lease_until: new Date(0) })
      .execute();
    await other.watch();
    return (await other.transactions())[0]?.state === "final";
  };
  await waitFor(takeOver, { within: 20_000, what: "the other watcher finalizes the original" });
  held.resolve();
  await frozen.catch((error: unknown) => expect(error).toMatchObject({ transient: true }));
  expect(asked).toBe(1);
  expect((await other.transactions()).map(({ replacement, state }) => [replacement, state])).toEqual([[0, "final"]]);
  expect(await other.statesOf([one.id])).toEqual(["confirmed"]);

  await sendLater(chain, other, later.id);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(2);
});

test("a replacement that was stored after its original became final does not block its lane", async () => {
  const { chain, fixture, later } = await startUnderpriced();
  await minePending(chain, fixture);
  await fixture.watch();
  const [original] = await fixture.transactions();
  if (original?.state !== "final") throw new Error("the original is not final");
  const hash: Hex = `0x${"ab".repeat(32)}`;
  const open = { block_number: null, block_id: null, gas_used: null, gas_price: null, fee: null, reverted: null };
  await insertTransaction(fixture.db, { ...original, ...open, replacement: 1, hash, state: "signed" });
  const key = { lane_id: original.lane_id, nonce: original.nonce, replacement: 1 };
  await recordBroadcast(fixture.db, key, { state: "broadcast", at: fixture.clock.now() });
  await sendLater(chain, fixture, later.id);
  expect((await fixture.transactions()).map(({ nonce, replacement, state }) => [nonce, replacement, state])).toEqual([
    [0, 0, "final"],
    [0, 1, "replaced"],
    [1, 0, "final"],
  ]);
});
