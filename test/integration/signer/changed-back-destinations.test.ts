import type { Hex } from "viem";
import { expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { applyDueChanges } from "../../../payments/merchants/decide-changes.ts";
import {
  addDestinations,
  changeDestination,
  deleteDestination,
  listDestinations,
} from "../../../payments/merchants/destinations.ts";
import { reportDestinations } from "../../../payments/merchants/report-destinations.ts";
import { applyDueClaims } from "../../../signer/apply-due-claims.ts";
import type { DestinationsRequest } from "../../../signer/protocol.ts";
import { fundBuyer, startChain, usdcBalance } from "../../support/evm-chain.ts";
import { execute } from "../../support/execute-sql.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { createDatabase } from "../../support/test-database.ts";
import { startTestSigner } from "../../support/test-signer.ts";

// Merchants who change their account and change back, with waiting periods of their accounts that differ from the signer's 72 hours.

const chain = await startChain();
const databaseUrl = await createDatabase();
const signing = await startTestSigner(chain);

/** A merchant that has been paid through the signer, with a payment that is not paid out yet. */
async function setUp(destinationWaitingHours: number) {
  const fixture = await makeMerchantFixture(chain, { databaseUrl, signer: signing.signer, destinationWaitingHours });
  const { deps, accountId, merchantId, mode } = fixture;
  const owner = { accountId, merchantId, mode };
  const report = () => reportDestinations(deps);
  const settle = async () => {
    const paymentId = await fixture.pay(await fundBuyer(chain));
    const [outcome] = await fixture.settle((await fixture.settlementOf(paymentId)).id);
    await fixture.relay();
    await fixture.watch();
    return outcome;
  };
  const [{ id } = { id: "" }] = unwrap(await listDestinations(deps, owner));
  const change = async (address: string) => {
    const destination = `${chain.id}:${address}`;
    unwrap(await changeDestination(deps, { ...owner, id, actor: testActor, destination }));
  };
  const remove = async () => unwrap(await deleteDestination(deps, { ...owner, id, actor: testActor }));
  const addOwn = async () => {
    const settlements = [{ asset: chain.asset, destination: `${chain.id}:${fixture.destination}` }];
    unwrap(await addDestinations(deps, { ...owner, actor: testActor, settlements }));
  };
  /** Lets time pass for the service and for the signer. */
  const wait = async (hours: number) => {
    fixture.clock.advance(hours * 3_600_000);
    signing.clock.advance(hours * 3_600_000);
    await applyDueChanges(deps);
    await report();
    applyDueClaims(signing.deps);
  };
  const paid = (address: Hex) => usdcBalance(chain, address);
  await report();
  expect(await settle()).toBe("begun");
  return {
    deps,
    own: fixture.destination,
    other: newKey().address,
    report,
    settle,
    change,
    remove,
    addOwn,
    wait,
    paid,
  };
}

test("a merchant whose account waits a day changes back within the signer's three days, and is paid", async () => {
  const { own, other, report, settle, change, wait, paid } = await setUp(24);
  await change(other);
  await report();
  await wait(25);
  await change(own);
  await report();
  await wait(25);
  for (let day = 0; day < 4; day += 1) {
    await wait(24);
    expect(await settle()).toBe("begun");
  }
  expect(await paid(own)).toBe(5_000_000n);
});

test("an account that was deleted does not apply in the signer later, and the one before it is paid again", async () => {
  const { own, other, report, settle, change, remove, addOwn, wait, paid } = await setUp(24);
  await change(other);
  await wait(25);
  await remove();
  await report();
  await wait(96);
  await addOwn();
  await wait(25);
  expect(await settle()).toBe("begun");
  expect(await paid(own)).toBe(2_000_000n);
});

test("a merchant of an account without a waiting period changes and changes back while the signer is down, and is paid", async () => {
  const { own, other, report, settle, change, wait, paid } = await setUp(0);
  await signing.stop();
  await change(other);
  await report();
  await change(own);
  await report();
  await signing.start();
  await report();
  for (let day = 0; day < 4; day += 1) await wait(24);
  expect(await settle()).toBe("begun");
  expect(await paid(own)).toBe(2_000_000n);
});

test("a merchant whose account waits longer than the signer is paid to the old account until the change applies, then to the new one", async () => {
  const { own, other, report, settle, change, wait, paid } = await setUp(120);
  await change(other);
  await report();
  for (let day = 0; day < 4; day += 1) await wait(24);
  expect(await settle()).toBe("begun");
  await wait(24);
  expect(await settle()).toBe("begun");
  expect([await paid(own), await paid(other)]).toEqual([2_000_000n, 1_000_000n]);
});

test("an account that no report names is paid after the signer's period, by the payouts to it", async () => {
  const { other, settle, change, paid } = await setUp(0);
  await change(other);
  expect(await settle()).toBe("destination_waiting");
  signing.clock.advance(72 * 3_600_000);
  applyDueClaims(signing.deps);
  expect(await settle()).toBe("begun");
  expect(await paid(other)).toBeGreaterThan(0n);
});

test("changes whose report reached the signer after a newer one are reported again", async () => {
  const { deps, own, other, report, settle, change, wait, paid } = await setUp(0);
  await change(other);
  const claimDestinations = async (request: DestinationsRequest) => {
    // Postgres ends the transaction of a worker that hangs, and another one reports that the merchant has changed back.
    await execute(
      databaseUrl,
      `select pg_terminate_backend(pid) from pg_locks where relation = 'named_lock'::regclass and mode = 'RowShareLock'
        and pid <> pg_backend_pid()`,
    );
    await change(own);
    await report();
    return signing.signer.claimDestinations(request);
  };
  await expect(reportDestinations({ ...deps, signer: { claimDestinations } })).rejects.toThrow();
  await report();
  for (let day = 0; day < 4; day += 1) await wait(24);
  expect(await settle()).toBe("begun");
  expect(await paid(own)).toBe(2_000_000n);
});
