import { sql } from "kysely";
import { expect, test } from "vitest";
import { lockMerchant } from "../../../db/queries/merchants.ts";
import { newKey } from "../../../local/networks-document.ts";
import { newId } from "../../../payments/ids.ts";
import { isTransient } from "../../../payments/is-transient.ts";
import { addDestinations, changeDestination, listDestinations } from "../../../payments/merchants/destinations.ts";
import { catalog, type JobData, queueNames } from "../../../queues/catalog.ts";
import { createHandlers } from "../../../workers/handlers.ts";
import { fundBuyer, startChain } from "../../support/evm-chain.ts";
import { execute } from "../../support/execute-sql.ts";
import { confirmAsContractWallet } from "../../support/gas-burners.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { readSystemStatus } from "../../support/read-system-status.ts";
import { delegate } from "../../support/smart-wallets.ts";
import { testActor } from "../../support/test-actor.ts";
import { createDatabase } from "../../support/test-database.ts";
import { recordEnqueued } from "../../support/test-deps.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const handlers = createHandlers({ ...fixture.deps, isTransient });
const aborted = AbortSignal.abort();
const run = <N extends keyof typeof handlers>(name: N, data: JobData<N>) =>
  (handlers[name] as (data: JobData<N>, signal: AbortSignal) => Promise<unknown>)(data, aborted);

test("deliveries of every outcome are 0 before the first one", async () => {
  const { values } = await fixture.deps.metrics.webhookDeliveries.get();
  expect(Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]))).toEqual({
    delivered: 0,
    refused: 0,
    internal: 0,
    unreachable: 0,
    timeout: 0,
    private_address: 0,
    unusable: 0,
  });
});

/** Returns all rows that a repeated job must not change. */
const readAllRows = async () => {
  const tables = ["payment", "attempt", "transfer", "transaction", "settlement", "ledger_entry", "merchant_balance"];
  const rows = await Promise.all(
    tables.map(async (table) => [table, await execute(fixture.databaseUrl, `select * from ${table} order by 1, 2, 3`)]),
  );
  return Object.fromEntries(rows) as Record<string, unknown>;
};

test("every job of a finished payment, run again in any order, changes nothing and moves no money", async () => {
  const paymentId = await fixture.create();
  const attemptId = await fixture.attempt(paymentId, await fundBuyer(chain));
  await run("verify-signature", { chain: chain.id, attemptIds: [attemptId] });
  const [transfer] = await fixture.transfers();
  const relay = { chain: chain.id, transferId: transfer?.id ?? "" };
  await run("relay-transfers", relay);
  await fixture.watch();
  const settlementIds = [(await fixture.settlementOf(paymentId)).id] as [string];
  await run("settle", { settlementIds });
  await run("relay-transfers", relay);
  await fixture.watch();
  expect((await fixture.settlementOf(paymentId)).state).toBe("paid");
  const before = await readAllRows();
  const nonce = await chain.client.getTransactionCount({ address: chain.keys.lanes[0]?.address ?? "0x" });

  fixture.clock.advance(3_600_000);
  const jobs: [keyof typeof handlers, unknown][] = [
    ["settle", { settlementIds }],
    ["expire-payment", { paymentId }],
    ["verify-signature", { chain: chain.id, attemptIds: [attemptId] }],
    ["relay-transfers", relay],
    ["watch-chain", { chain: chain.id, block: 1 }],
    ["sweep", { at: 1 }],
  ];
  for (const [name, data] of [...jobs, ...jobs.toReversed()]) await run(name, data as never);
  await Promise.all(jobs.map(([name, data]) => run(name, data as never)));
  expect(await readAllRows()).toEqual(before);
  expect(await chain.client.getTransactionCount({ address: chain.keys.lanes[0]?.address ?? "0x" })).toBe(nonce);
});

test("a reconciliation that is refused is logged with its reason", async () => {
  const other = await makeMerchantFixture(chain);
  await other.db.deleteFrom("asset_backfill").execute();
  await execute(other.databaseUrl, "delete from chain_cursor");
  await createHandlers({ ...other.deps, isTransient }).reconcile({ chain: chain.id, at: 1 }, aborted);
  const logged = other.lines.find((line) => line.includes("the ledger was not compared with the chain"));
  expect(logged).toContain("is not watched yet");
});

test("a payer that delegates to code is verified and relayed by the queues of contract wallets", async () => {
  const buyer = await fundBuyer(chain);
  const paymentId = await fixture.create();
  const attemptId = await fixture.attempt(paymentId, buyer);
  await delegate(chain, buyer, "Delegate");
  fixture.enqueued.length = 0;
  await run("verify-signature", { chain: chain.id, attemptIds: [attemptId] });
  expect(await fixture.verificationResult(attemptId)).toBe("waiting");
  expect(fixture.enqueued.map(({ queue }) => queue)).toEqual(["verify-contract-wallet"]);
  await run("verify-contract-wallet", { chain: chain.id, attemptIds: [attemptId] });
  expect(await fixture.verificationResult(attemptId)).toBe("verified");
  expect(fixture.enqueued.at(-1)?.queue).toBe("relay-contract-wallet");
  const [transfer] = (await fixture.transfers()).filter((row) => row.payment_id === paymentId);
  await run("relay-transfers", { chain: chain.id, transferId: transfer?.id ?? "" });
  await run("relay-contract-wallet", { chain: chain.id, transferId: transfer?.id ?? "" });
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
});

test("the sweep enqueues due work on the queue that verifies or relays it", async () => {
  const own = await makeMerchantFixture(chain);
  const ownHandlers = createHandlers({ ...own.deps, isTransient });
  const [key, wallet] = [await fundBuyer(chain), await fundBuyer(chain)];
  await own.attempt(await own.create(), key);
  const garbage = await confirmAsContractWallet(own, await own.create(), wallet);
  const plain = await own.attempt(await own.create(), await fundBuyer(chain));
  await own.verify(plain);
  await own.db.updateTable("transfer").set({ smart_wallet: true }).execute();
  own.enqueued.length = 0;
  own.clock.advance(10_000);
  await ownHandlers.sweep({ at: 1 }, aborted);
  const queues = own.enqueued.map(({ queue }) => queue);
  for (const queue of ["verify-signature", "verify-contract-wallet", "relay-contract-wallet"])
    expect(queues).toContain(queue);
  expect(queues).not.toContain("relay-transfers");
  const found = own.enqueued.find(({ queue }) => queue === "verify-contract-wallet");
  expect(found?.job.data).toEqual({ chain: chain.id, attemptIds: [garbage] });
});

test("the sweep enqueues one job for a hundred due attempts of a chain", async () => {
  const own = await makeMerchantFixture(chain);
  const attempt = await own.attempt(await own.create(), await fundBuyer(chain));
  const others = Array.from({ length: 120 }, () => newId("att", new Date()));
  for (const [index, id] of others.entries())
    await sql`
      insert into attempt (id, payment_id, option_id, chain, merchant_id, digest, results, state, created_at, due_at, verification)
      select ${id}, payment_id, option_id, ${index < 110 ? chain.id : "eip155:31338"}, merchant_id, ${Buffer.alloc(32, index)}, results,
        state, created_at, due_at, verification from attempt where id = ${attempt}`.execute(own.db);
  own.enqueued.length = 0;
  own.clock.advance(10_000);
  await createHandlers({ ...own.deps, isTransient }).sweep({ at: 1 }, aborted);
  const jobs = own.enqueued
    .filter(({ queue }) => queue === "verify-signature")
    .map(({ job }) => job.data as JobData<"verify-signature">);
  const sizes = jobs.map((job) => `${job.chain} ${job.attemptIds.length}`);
  expect(sizes.toSorted()).toEqual([`${chain.id} 100`, `${chain.id} 11`, "eip155:31338 10"]);
  expect(new Set(jobs.flatMap(({ attemptIds }) => attemptIds))).toEqual(new Set([attempt, ...others]));
});

test("jobs of a chain that hangs hold a quarter of the slots, and the jobs of another chain run", async () => {
  const own = await makeMerchantFixture(chain);
  const { "verify-signature": verify } = createHandlers({ ...own.deps, isTransient });
  const ended: string[] = [];
  const verifyOn = async (chain: string) => {
    await verify({ chain, attemptIds: [newId("att", new Date())] }, aborted);
    ended.push(chain);
  };
  const slots = catalog["verify-signature"].concurrency;
  const jobs = await own.db.transaction().execute(async (transaction) => {
    await sql`lock table attempt`.execute(transaction);
    const jobs = [...Array<string>(slots).fill(chain.id), "eip155:31338"].map(verifyOn);
    await new Promise(setImmediate);
    // The other three quarters have ended at once.
    expect(ended).toEqual(Array((slots * 3) / 4).fill(chain.id));
    return jobs;
  });
  await Promise.all(jobs);
  expect(ended).toContain("eip155:31338");
});

test("jobs about missing rows end without an error", async () => {
  const id = "0".repeat(32);
  expect(await run("verify-signature", { chain: chain.id, attemptIds: [`att_${id}`] })).toEqual({ done: true });
  expect(await run("expire-payment", { paymentId: `pay_${id}` })).toEqual({ done: true });
  expect(await run("settle", { settlementIds: [`stl_${id}`] })).toEqual({ done: true });
  expect(await run("relay-transfers", { chain: chain.id, transferId: `trf_${id}` })).toEqual({ done: true });
});

/** Runs each job of a chain on a worker that does not have it. Returns the results, or the codes of the errors. */
async function runWithoutChain(deps: typeof fixture.deps, chain: string) {
  const own = createHandlers({ ...deps, chains: new Map(), isTransient });
  const ref = { chain, transferId: `trf_${"0".repeat(32)}` };
  const timed = { chain, at: 1 };
  const jobs = {
    "relay-transfers": own["relay-transfers"](ref, aborted),
    "relay-contract-wallet": own["relay-contract-wallet"](ref, aborted),
    "submit-solana": own["submit-solana"](ref, aborted),
    "watch-chain": own["watch-chain"]({ chain, block: 1 }, aborted),
    "read-history": own["read-history"](timed, aborted),
    reconcile: own.reconcile(timed, aborted),
    "move-excess": own["move-excess"](timed, aborted),
  };
  const ends = Object.entries(jobs).map(async ([name, job]) => [name, await job.catch((error) => error.code)] as const);
  return Object.fromEntries(await Promise.all(ends));
}

test("a worker leaves all jobs of a chain that it does not have to the workers that have it", async () => {
  const done = { done: true };
  const left = {
    "relay-transfers": done,
    "relay-contract-wallet": done,
    "submit-solana": done,
    // The watcher's job does not wait for its row.
    "watch-chain": { rerunInMs: 1_000 },
    "read-history": done,
    reconcile: done,
    "move-excess": done,
  };
  expect(await runWithoutChain(fixture.deps, chain.id)).toEqual(left);
  // No worker has begun to watch this one.
  expect(await runWithoutChain(fixture.deps, "eip155:999")).toEqual(left);
});

test("jobs of a chain that no worker has had for a day fail and need an operator", async () => {
  const own = await makeMerchantFixture(chain);
  const goneSince = own.deps.now().getTime() - 24 * 3_600_000;
  const setServed = (ms: number) =>
    own.db
      .updateTable("chain_cursor")
      .set({ due_at: new Date(goneSince + ms) })
      .execute();
  await setServed(60_000);
  expect(Object.values(await runWithoutChain(own.deps, chain.id))).not.toContain("unknown_chain");
  await setServed(-60_000);
  const failed = [
    "relay-transfers",
    "relay-contract-wallet",
    "submit-solana",
    "watch-chain",
    "read-history",
    "reconcile",
  ];
  expect(await runWithoutChain(own.deps, chain.id)).toEqual({
    ...Object.fromEntries(failed.map((name) => [name, "unknown_chain"])),
    "move-excess": { done: true },
  });
});

test("one sweep enqueues a check of the pages every two minutes, and one process runs it", async () => {
  const { enqueue, enqueued } = recordEnqueued();
  let checks = 0;
  const checkPages = async () => void checks++;
  const own = createHandlers({ ...fixture.deps, enqueue, checkPages, isTransient });
  const minute = 1_900_000_080;
  for (const after of [-1, 0, 1, 59, 60, 61, 119, 120, 121, 239]) await own.sweep({ at: minute + after }, aborted);
  const jobs = enqueued.filter(({ queue }) => queue === "check-pages").map(({ job }) => job.data);
  expect(jobs).toEqual([{ at: minute }, { at: minute + 120 }]);
  expect(checks).toBe(0);
  await own["check-pages"]({ at: minute }, aborted);
  expect(checks).toBe(1);
});

test("a sweep applies a change of a destination whose time has come, and has it reported to the signer", async () => {
  const { enqueue, enqueued } = recordEnqueued();
  const own = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl, destinationWaitingHours: 1 });
  const { deps, accountId, merchantId, mode } = own;
  const owner = { accountId, merchantId, mode };
  const sweep = createHandlers({ ...deps, enqueue, isTransient }).sweep;
  const [{ id } = { id: "" }] = unwrap(await listDestinations(deps, owner));
  const destination = `${chain.id}:${newKey().address}`;
  unwrap(await changeDestination(deps, { ...owner, id, actor: testActor, destination }));
  const listed = async () => unwrap(await listDestinations(deps, owner))[0]?.destination;
  await sweep({ at: 1 }, aborted);
  expect(await listed()).toBe(`${chain.id}:${own.destination}`);
  const waiting = async () => (await readSystemStatus(deps)).destinationChanges;
  expect(await waiting()).toEqual([{ mode: "live", change: expect.any(Number), count: 1 }]);
  own.clock.advance(3_600_000);
  await sweep({ at: 2 }, aborted);
  expect(await listed()).toBe(destination);
  expect(await waiting()).toEqual([]);
  expect(enqueued.filter(({ queue }) => queue === "report-destinations")).not.toEqual([]);
});

test("a sweep runs its other parts although one of them fails, and needs an operator then", async () => {
  const { enqueue, enqueued } = recordEnqueued();
  const own = await makeMerchantFixture(chain, { databaseUrl: await createDatabase(), destinationWaitingHours: 1 });
  const { deps, accountId, merchantId, mode } = own;
  const owner = { accountId, merchantId, mode };
  const [{ id } = { id: "" }] = unwrap(await listDestinations(deps, owner));
  const destination = `${chain.id}:${newKey().address}`;
  unwrap(await changeDestination(deps, { ...owner, id, actor: testActor, destination }));
  await execute(
    own.databaseUrl,
    "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'a bad row'; end $$",
    "create trigger refuse before update on destination_change for each row execute function refuse()",
  );
  own.clock.advance(3_600_000);
  const failed = createHandlers({ ...deps, enqueue, isTransient }).sweep({ at: 1_900_000_080 }, aborted);
  await expect(failed).rejects.toThrow("a bad row");
  const queues = enqueued.map(({ queue }) => queue);
  expect(queues).toEqual(expect.arrayContaining(["report-destinations", "sum-payments", "check-pages"]));
});

test("a sweep waits for one locked merchant for a short time, and applies the changes of others and runs its other parts", async () => {
  const { enqueue, enqueued } = recordEnqueued();
  const databaseUrl = await createDatabase();
  const [held, other] = [
    await makeMerchantFixture(chain, { databaseUrl, destinationWaitingHours: 1 }),
    await makeMerchantFixture(chain, { databaseUrl, destinationWaitingHours: 1 }),
  ];
  /** Requests a change of each of the two destinations of a merchant. */
  const setUp = async ({ deps, accountId, merchantId, mode, destination: account }: typeof held) => {
    const owner = { accountId, merchantId, mode };
    const settlements = [{ asset: `${chain.id}/erc20:${newKey().address}`, destination: `${chain.id}:${account}` }];
    unwrap(await addDestinations(deps, { ...owner, actor: testActor, settlements }));
    const list = async () => unwrap(await listDestinations(deps, owner)).map((one) => one.destination);
    const destination = `${chain.id}:${newKey().address}`;
    for (const { id } of unwrap(await listDestinations(deps, owner)))
      unwrap(await changeDestination(deps, { ...owner, id, actor: testActor, destination }));
    return { list, before: await list(), after: [destination, destination] };
  };
  const [first, second] = [await setUp(held), await setUp(other)];
  const { deps } = other;
  other.clock.advance(3_600_000);
  const { sweep } = createHandlers({ ...deps, enqueue, isTransient });
  await held.db.transaction().execute(async (transaction) => {
    await lockMerchant(transaction, held);
    await expect(sweep({ at: 1_900_000_080 }, aborted)).rejects.toMatchObject({ code: "55P03" });
    expect(await second.list()).toEqual(second.after);
    const queues = enqueued.map(({ queue }) => queue);
    expect(queues).toEqual(expect.arrayContaining(["report-destinations", "reconcile", "sum-payments", "move-excess"]));
    expect(await first.list()).toEqual(first.before);
    const waits = other.lines.filter((line) => line.includes("destination change cannot be applied"));
    expect(waits, "the sweep waits once for each merchant").toHaveLength(1);
  });
  await sweep({ at: 1_900_000_081 }, aborted);
  expect(await first.list()).toEqual(first.after);
});

test("every queue has a handler", () => {
  expect(Object.keys(handlers).sort()).toEqual(queueNames.toSorted());
});
