import pg from "pg";
import { expect, test } from "vitest";
import { listByAuthorizations } from "../../../db/queries/transfers.ts";
import { listExceptions } from "../../../payments/accounting/resolve-exceptions.ts";
import { createSendHandlers } from "../../../payments/lifecycle/relay-transfers.ts";
import { claimExistingMovement, declineTransfer } from "../../../transfers/decline-transfer.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { fundBuyer, mine, startChain } from "../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { signUnconfirmed } from "../../support/signed-payment.ts";
import { waitFor } from "../../support/wait-for.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain, { change: { finality: { blocks: 3 } } });
const { deps, db } = fixture;
const { declined } = createSendHandlers(deps);
const within = { within: 20_000 };

/** Creates a payment whose transfer is ready, and returns how a third party relays it. */
async function makeReady() {
  const buyer = await fundBuyer(chain);
  const { paymentId, option, results, relay } = await signUnconfirmed(fixture, { chain, buyer });
  await fixture.verify(unwrap(await fixture.confirm(paymentId, option.id, results)).attemptId ?? "");
  const made = (await fixture.transfers()).find((one) => one.payment_id === paymentId);
  const [row] = await listByAuthorizations(db, { chain: chain.id, nonces: [made?.authorization_nonce ?? ""] });
  if (row?.state !== "ready") throw new Error("the transfer is not ready");
  return { paymentId, row, relay };
}

/** Locks the table of movements against writers, as a slow statement may, until `release` is called. */
async function blockMovements() {
  const client = new pg.Client({ connectionString: fixture.databaseUrl });
  await client.connect();
  addCleanup(() => client.end());
  await client.query("begin");
  await client.query("lock table observation in share row exclusive mode");
  return () => client.query("rollback");
}

/** Counts the statements that wait for a lock. The watcher renews its lease meanwhile, which may wait as well. */
async function countWaiting(): Promise<number> {
  const client = new pg.Client({ connectionString: fixture.databaseUrl });
  await client.connect();
  const { rows } = await client.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and query not ilike 'update "chain_cursor"%'`,
  );
  await client.end();
  return rows.length;
}

test("money that arrives while a lane declines its transfer pays, because the lane waits for the watcher", async () => {
  const { paymentId, row, relay } = await makeReady();
  await relay();
  const release = await blockMovements();
  const watched = fixture.watch();
  await waitFor(async () => (await countWaiting()) >= 1, { ...within, what: "the watcher writes the movement" });
  let isDeclined = false;
  const declining = declineTransfer(deps, row, declined).then(() => {
    isDeclined = true;
  });
  await waitFor(async () => isDeclined || (await countWaiting()) >= 2, { ...within, what: "the lane's decision" });
  await release();
  await Promise.all([watched, declining]);
  await mine(chain, 3);
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
});

test("money of a transfer that has ended is an exception, also when a lane finds it in its dry run", async () => {
  const { paymentId, row, relay } = await makeReady();
  await declineTransfer(deps, row, declined);
  expect((await fixture.status(paymentId)).state).toBe("failed");
  await relay();
  await fixture.watch();
  expect(await claimExistingMovement(deps, row)).toBe(true);
  await mine(chain, 3);
  await fixture.watch();
  const found = (await listExceptions(deps, 100)).filter(({ payer }) => payer === row.payer);
  expect(found).toMatchObject([{ amount: row.amount }]);
});
