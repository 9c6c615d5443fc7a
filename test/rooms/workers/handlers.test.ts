import { expect, test } from "vitest";
import { isTransientChainError } from "../../../chains/faults.ts";
import { type JobData, queueNames } from "../../../queues/catalog.ts";
import { createHandlers } from "../../../workers/handlers.ts";
import { createJudge } from "../../../workers/trouble.ts";
import { fundBuyer, startChain } from "../../support/chain.ts";
import { recordRings } from "../../support/deps.ts";
import { confirmAsWallet } from "../../support/gas-burners.ts";
import { delegate } from "../../support/smart-wallets.ts";
import { execute } from "../../support/sql.ts";
import { makeTill } from "../../support/till.ts";

const chain = await startChain();
const till = await makeTill(chain);
const handlers = createHandlers({ ...till.deps, isTransient: createJudge(isTransientChainError) });
const aborted = AbortSignal.abort();
const run = <N extends keyof typeof handlers>(name: N, data: JobData<N>) =>
  (handlers[name] as (data: JobData<N>, signal: AbortSignal) => Promise<unknown>)(data, aborted);

/** Returns all rows that a repeated job must not change. */
const readAllRows = async () => {
  const tables = ["payment", "attempt", "transfer", "transaction", "settlement", "ledger_entry", "merchant_balance"];
  const rows = await Promise.all(
    tables.map(async (table) => [table, await execute(till.databaseUrl, `select * from ${table} order by 1, 2, 3`)]),
  );
  return Object.fromEntries(rows) as Record<string, unknown>;
};

test("every job of a finished payment, run again in any order, changes nothing and moves no money", async () => {
  const paymentId = await till.create();
  const attemptId = await till.attempt(paymentId, await fundBuyer(chain));
  await run("verify-signature", { attemptIds: [attemptId] });
  const [transfer] = await till.transfers();
  const relay = { chain: chain.id, transferId: transfer?.id ?? "" };
  await run("relay-permit", relay);
  await till.watch();
  const settlementIds = [(await till.settlementOf(paymentId)).id] as [string];
  await run("settle", { settlementIds });
  await run("relay-permit", relay);
  await till.watch();
  expect((await till.settlementOf(paymentId)).state).toBe("paid");
  const before = await readAllRows();
  const nonce = await chain.client.getTransactionCount({ address: chain.keys.lanes[0]?.address ?? "0x" });

  till.clock.advance(3_600_000);
  const jobs: [keyof typeof handlers, unknown][] = [
    ["settle", { settlementIds }],
    ["expire-payment", { paymentId }],
    ["verify-signature", { attemptIds: [attemptId] }],
    ["relay-permit", relay],
    ["watch-chain", { chain: chain.id, block: 1 }],
    ["sweep", { at: 1 }],
  ];
  for (const [name, data] of [...jobs, ...jobs.toReversed()]) await run(name, data as never);
  await Promise.all(jobs.map(([name, data]) => run(name, data as never)));
  expect(await readAllRows()).toEqual(before);
  expect(await chain.client.getTransactionCount({ address: chain.keys.lanes[0]?.address ?? "0x" })).toBe(nonce);
});

test("a payer that delegates to code is verified and relayed by the queues of contract wallets", async () => {
  const buyer = await fundBuyer(chain);
  const paymentId = await till.create();
  const attemptId = await till.attempt(paymentId, buyer);
  await delegate(chain, buyer, "Delegate");
  till.rung.length = 0;
  await run("verify-signature", { attemptIds: [attemptId] });
  expect(await till.verdict(attemptId)).toBe("waiting");
  expect(till.rung.map(({ queue }) => queue)).toEqual(["verify-wallet"]);
  await run("verify-wallet", { attemptIds: [attemptId] });
  expect(await till.verdict(attemptId)).toBe("verified");
  expect(till.rung.at(-1)?.queue).toBe("relay-wallet");
  const [transfer] = (await till.transfers()).filter((row) => row.payment_id === paymentId);
  await run("relay-permit", { chain: chain.id, transferId: transfer?.id ?? "" });
  await run("relay-wallet", { chain: chain.id, transferId: transfer?.id ?? "" });
  await till.watch();
  expect((await till.status(paymentId)).state).toBe("succeeded");
});

test("the sweep enqueues due work on the queue that verifies or relays it", async () => {
  const own = await makeTill(chain);
  const ownHandlers = createHandlers({ ...own.deps, isTransient: createJudge(isTransientChainError) });
  const [key, wallet] = [await fundBuyer(chain), await fundBuyer(chain)];
  await own.attempt(await own.create(), key);
  const garbage = await confirmAsWallet(own, await own.create(), wallet);
  const carried = await own.attempt(await own.create(), await fundBuyer(chain));
  await own.verify(carried);
  await own.db.updateTable("transfer").set({ smart_wallet: true }).execute();
  own.rung.length = 0;
  own.clock.advance(10_000);
  await ownHandlers.sweep({ at: 1 }, aborted);
  const queues = own.rung.map(({ queue }) => queue);
  for (const queue of ["verify-signature", "verify-wallet", "relay-wallet"]) expect(queues).toContain(queue);
  expect(queues).not.toContain("relay-permit");
  const found = own.rung.find(({ queue }) => queue === "verify-wallet");
  expect(found?.bell.data).toEqual({ attemptIds: [garbage] });
});

test("jobs about missing rows end without an error", async () => {
  const id = "0".repeat(32);
  expect(await run("verify-signature", { attemptIds: [`att_${id}`] })).toEqual({ done: true });
  expect(await run("expire-payment", { paymentId: `pay_${id}` })).toEqual({ done: true });
  expect(await run("settle", { settlementIds: [`stl_${id}`] })).toEqual({ done: true });
  expect(await run("relay-permit", { chain: chain.id, transferId: `trf_${id}` })).toEqual({ done: true });
});

test("a job on a chain that has left the networks file fails and needs an operator", async () => {
  const lost = { chain: "eip155:999", transferId: `trf_${"0".repeat(32)}` };
  await expect(run("relay-permit", lost)).rejects.toMatchObject({ code: "unknown_chain", transient: false });
});

test("one sweep enqueues a check of the pages every two minutes, and one process runs it", async () => {
  const { ring, rung } = recordRings();
  let checks = 0;
  const checkPages = async () => void checks++;
  const isTransient = createJudge(isTransientChainError);
  const own = createHandlers({ ...till.deps, ring, checkPages, isTransient });
  const minute = 1_900_000_080;
  for (let at = minute - 1; at < minute + 240; at += 1) await own.sweep({ at }, aborted);
  const jobs = rung.filter(({ queue }) => queue === "check-pages").map(({ bell }) => bell.data);
  expect(jobs).toEqual([{ at: minute }, { at: minute + 120 }]);
  expect(checks).toBe(0);
  await own["check-pages"]({ at: minute }, aborted);
  expect(checks).toBe(1);
});

test("every queue has a handler", () => {
  expect(Object.keys(handlers).sort()).toEqual(queueNames.toSorted());
});
