import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { openChains } from "../../../../chains/open-chains.ts";
import { openDb } from "../../../../db/open.ts";
import { insertAuditEntries } from "../../../../db/queries/audit-entries.ts";
import { exportAuditHeads } from "../../../../payments/maintenance/audit-heads.ts";
import { takeDueWork } from "../../../../payments/maintenance/take-due-rows.ts";
import { createLog } from "../../../../runtime/log.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { parseNetworks } from "../../../../runtime/networks/read-networks.ts";
import { openEpoch } from "../../../../transfers/database-epoch.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { execute } from "../../../support/execute-sql.ts";
import { insertOptionRow, insertTransferRow } from "../../../support/insert-rows.ts";
import { readSystemStatus } from "../../../support/read-system-status.ts";
import { testActor } from "../../../support/test-actor.ts";
import { createDatabase } from "../../../support/test-database.ts";
import { makeEpochMemory } from "../../../support/test-deps.ts";
import { networksDocument } from "../../api/start-api.ts";

const url = await createDatabase();
const db = openDb(url, { max: 1 });
addCleanup(() => db.destroy());
const log = createLog({ level: "silent", role: "worker" });
const epoch = openEpoch({ db, memory: makeEpochMemory(), log });
const chains = openChains(parseNetworks(networksDocument), createMetrics(new Registry(), "worker"));
const here = "eip155:31337";
const start = new Date("2026-03-01T12:00:00Z");
const after = (seconds: number) => new Date(start.getTime() + seconds * 1_000);
const read = (seconds: number) => readSystemStatus({ db, chains, now: () => after(seconds), startedAt: start });

await execute(
  url,
  "insert into account (id, name, created_at) values ('acc_1', 'Shop', now())",
  `insert into merchant (id, account_id, mode, name, email, created_at)
    values ('mrch_1', 'acc_1', 'live', 'Shop', 'shop@example.test', now())`,
);

test("a sweep that enqueues a settlement again does not reset its age", async () => {
  await execute(
    url,
    `insert into chain_cursor (chain, number, block_id, final_number) values ('${here}', 5, '0x05', 5)`,
    `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, due_at)
      values ('stl_1', 'mrch_1', 'live', '${here}/erc20:0x00', 1, 100, 'due',
        '${start.toISOString()}', '${after(2).toISOString()}')`,
  );
  for (const seconds of [2, 10, 30, 100]) {
    await execute(
      url,
      `update chain_cursor set reached_head_at = '${after(seconds).toISOString()}',
      epoch = (select id from database_epoch)`,
    );
    const deps = { db, chains, now: () => after(seconds), startedAt: after(-60), epoch };
    expect(await takeDueWork(deps, "settlements")).toHaveLength(1);
    expect((await read(seconds)).overdue).toContainEqual({ queue: "settle", seconds });
  }
  // A payout that does not arrive (for example to a blocked destination) counts too.
  await execute(url, "update settlement set state = 'paying', due_at = null");
  expect((await read(3_600)).overdue).toContainEqual({ queue: "settle", seconds: 3_600 });
  await execute(url, "update settlement set state = 'paid', paid_at = now()");
  expect((await read(3_600)).overdue).toContainEqual({ queue: "settle", seconds: 0 });
});

/** Stores the obstacle of every queue of a merchant's payouts. */
const block = (merchant: string, obstacle: string) =>
  execute(
    url,
    `update payout_queue set blocked_by = '${obstacle}', blocked_at = now() where merchant_id = '${merchant}'`,
  );

test("a payout that waits for its merchant or an operator hides no later one that waits for the service", async () => {
  const due = (id: string, merchant: string, seconds: number, state: string) =>
    `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, due_at)
      values ('${id}', '${merchant}', 'live', '${here}/erc20:0x0${id.slice(-1)}', 9, 100, '${state}', '${after(seconds).toISOString()}',
        '${after(seconds).toISOString()}')`;
  await execute(
    url,
    `insert into merchant (id, account_id, mode, name, email, created_at)
      values ('mrch_2', 'acc_1', 'live', 'Shop', 'shop@example.test', now())`,
    due("stl_2", "mrch_1", 0, "due"),
    due("stl_3", "mrch_1", 0, "accumulating"),
    due("stl_4", "mrch_2", 900, "due"),
  );
  const age = async () => (await read(1_000)).overdue.find(({ queue }) => queue === "settle")?.seconds;
  expect(await age()).toBe(1_000);
  for (const obstacle of ["no_destination", "not_served", "refund_pending", "unknown_asset"]) {
    await block("mrch_1", obstacle);
    expect([obstacle, await age()]).toEqual([obstacle, 100]);
  }
  for (const obstacle of ["balance_short", "limit_payout", "signer_unavailable"]) {
    await block("mrch_1", obstacle);
    expect([obstacle, await age()]).toEqual([obstacle, 1_000]);
  }
  // An operator holds them, whatever blocked them before.
  const hold = (at: string) => execute(url, `update merchant set payouts_held_at = ${at} where id = 'mrch_1'`);
  await hold("now()");
  expect(await age()).toBe(100);
  await hold("null");
  expect(await age()).toBe(1_000);
});

test("a payout that is held because it fails in simulation is not overdue, and is when it is sent and does not arrive", async () => {
  await execute(
    url,
    `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at)
      values ('stl_5', 'mrch_1', 'live', '${here}/erc20:0x00', 5, 100, 'due', '${after(-5_000).toISOString()}')`,
    "update settlement set state = 'paying' where id = 'stl_5'",
  );
  const merchant = { accountId: "acc_1", merchantId: "mrch_1" };
  const { id } = await insertTransferRow(db, merchant, { asset: `${here}/erc20:0x00` }, start);
  await execute(
    url,
    `update transfer set purpose = 'settlement', payment_id = null, settlement_id = 'stl_5' where id = '${id}'`,
  );
  const age = async () => (await read(1_000)).overdue.find(({ queue }) => queue === "settle")?.seconds;
  await execute(url, `update transfer set retries = 3 where id = '${id}'`);
  expect(await age()).toBe(6_000);
  await execute(url, `update transfer set retries = 4 where id = '${id}'`);
  expect(await age()).toBe(1_000);
  await execute(url, `update transfer set state = 'assigned' where id = '${id}'`);
  expect(await age()).toBe(6_000);
  await execute(
    url,
    `update transfer set state = 'ready' where id = '${id}'`,
    `update transfer set state = 'ended' where id = '${id}'`,
    "update settlement set state = 'paid', paid_at = now() where id = 'stl_5'",
  );
});

test("payouts and refunds on a chain that has left the networks file wait for their asset", async () => {
  const left = "eip155:7";
  await execute(
    url,
    `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, due_at)
      values ('stl_6', 'mrch_2', 'live', '${left}/erc20:0x00', 6, 100, 'due', '${after(-9_000).toISOString()}',
        '${after(-9_000).toISOString()}')`,
  );
  const { overdue, blocked } = await read(1_000);
  expect(overdue.find(({ queue }) => queue === "settle")?.seconds).toBeLessThan(9_000);
  expect(blocked.findLast((one) => one.kind === "settlement" && one.obstacle === "unknown_asset")?.count).toBe(1);
  // Nothing waits there any more.
  await execute(url, "update payout_queue set due_at = null where chain = 'eip155:7'");
  const idle = (await read(1_000)).blocked;
  expect(idle.findLast((one) => one.kind === "settlement" && one.obstacle === "unknown_asset")?.count).toBe(0);
});

test("a refund that its merchant's balance does not cover has an age of its own, and hides no other refund", async () => {
  const refund = (id: string, merchant: string, seconds: number) => [
    `insert into payment (id, account_id, merchant_id, mode, unit, value, state, created_at, updated_at, expires_at)
      values ('pay_${id}', 'acc_1', '${merchant}', 'live', 'iso4217/USD', 100, 'requires_action', now(), now(), now())`,
    `insert into payment_option (id, payment_id, account, chain, asset, token, payer, receiver, amount, authorization_nonce,
        valid_before, created_at)
      values ('opt_${id}', 'pay_${id}', '', '${here}', '${here}/erc20:0x00', '', '0x00', '0x01', 100, '${id}', 1, now())`,
    `update payment set option_id = 'opt_${id}' where id = 'pay_${id}'`,
    `insert into refund (id, payment_id, number, account_id, mode, merchant_id, asset, amount, state, created_at, updated_at, due_at)
      values ('${id}', 'pay_${id}', 1, 'acc_1', 'live', '${merchant}', '${here}/erc20:0x00', 100, 'due',
        '${after(seconds).toISOString()}', now(), '${after(seconds).toISOString()}')`,
  ];
  await execute(url, ...refund("rfd_1", "mrch_1", 0), ...refund("rfd_2", "mrch_2", 900));
  const ages = async () => {
    const { overdue, uncoveredRefundSeconds } = await read(1_000);
    return { overdue: overdue.find(({ queue }) => queue === "refund")?.seconds, uncovered: uncoveredRefundSeconds };
  };
  expect(await ages()).toEqual({ overdue: 1_000, uncovered: 0 });
  await block("mrch_1", "balance_short");
  expect(await ages()).toEqual({ overdue: 100, uncovered: 1_000 });
  await block("mrch_1", "inventory_short");
  expect(await ages()).toEqual({ overdue: 100, uncovered: 0 });
  await block("mrch_1", "unknown_asset");
  expect(await ages()).toEqual({ overdue: 100, uncovered: 0 });
  await block("mrch_1", "signer_unavailable");
  expect(await ages()).toEqual({ overdue: 1_000, uncovered: 0 });
});

test("a payment's age is counted from its deadline", async () => {
  await execute(
    url,
    `insert into payment (id, account_id, merchant_id, mode, unit, value, state, created_at, updated_at, expires_at, due_at)
      values ('pay_1', 'acc_1', 'mrch_1', 'live', 'iso4217/USD', 100, 'requires_action', '${start.toISOString()}',
        '${start.toISOString()}', '${after(300).toISOString()}', '${after(300).toISOString()}')`,
  );
  expect((await read(299)).overdue).toContainEqual({ queue: "expire-payment", seconds: 0 });
  expect((await read(310)).overdue).toContainEqual({ queue: "expire-payment", seconds: 10 });
});

test("a confirm's age is counted from its acceptance, and a push that waits for its block has no age", async () => {
  const attempt = (id: string, option: string) =>
    `insert into attempt (id, payment_id, option_id, chain, merchant_id, digest, results, state, created_at, due_at)
      values ('${id}', 'pay_1', '${option}', 'eip155:1', 'mrch_1', '\\x${id}', '[]', 'waiting', '${start.toISOString()}', '${after(2).toISOString()}')`;
  await insertOptionRow(db, "pay_1", "push");
  await execute(url, attempt("0a", "opt_pay_1"));
  expect((await read(60)).overdue).toContainEqual({ queue: "verify-signature", seconds: 0 });
  await execute(url, "delete from attempt", "delete from payment_option where payment_id = 'pay_1'");
  await insertOptionRow(db, "pay_1", "eip3009");
  await execute(url, attempt("0a", "opt_pay_1"));
  expect((await read(60)).overdue).toContainEqual({ queue: "verify-signature", seconds: 60 });
});

/** The moves by which a transaction reaches a state. */
const movesTo: Record<string, string[]> = {
  accepted: ["accepted"],
  included: ["included"],
  final: ["included", "final"],
};

/** A lane's signed transaction: nonce, replacement, state, seconds of age at the start, fee cap. */
const signedRow = (lane: string, nonce: number, replacement: number, state: string, age: number, fee: number) => [
  `insert into transaction (lane_id, nonce, replacement, chain, hash, bytes, gas_limit, max_fee_per_gas,
    max_priority_fee_per_gas, state, created_at)
  values ('${lane}', ${nonce}, ${replacement}, '${here}', '${lane}-${nonce}-${replacement}', '', 1, ${fee}, 1, 'signed',
    '${after(-age).toISOString()}')`,
  ...(movesTo[state] ?? []).map(
    (to) => `update transaction set state = '${to}' where hash = '${lane}-${nonce}-${replacement}'`,
  ),
];

test("a nonce's age is counted from its first transaction, whatever its replacements, and ends when one of them is included", async () => {
  const lane = (id: string) =>
    `insert into lane (id, chain, address, next_nonce) values ('${id}', '${here}', '${id}', 9)`;
  await execute(
    url,
    ...["busy", "done", "fresh"].map(lane),
    ...signedRow("busy", 6, 0, "final", 900, 10),
    ...signedRow("busy", 7, 0, "accepted", 60, 20),
    ...signedRow("busy", 7, 1, "accepted", 5, 30),
    ...signedRow("busy", 8, 0, "signed", 3, 25),
    ...signedRow("done", 8, 0, "accepted", 60, 20),
    ...signedRow("done", 8, 1, "included", 30, 40),
  );
  expect((await read(0)).lanes).toEqual([
    { chain: here, lane: "busy", nextNonce: 9, inFlight: 2, oldestSeconds: 60, maxFee: 25n, held: false },
    { chain: here, lane: "done", nextNonce: 9, inFlight: 0, oldestSeconds: 0, maxFee: 40n, held: false },
    { chain: here, lane: "fresh", nextNonce: 9, inFlight: 0, oldestSeconds: 0, maxFee: undefined, held: false },
  ]);
});

test("a chain's lag is counted from the last time it reached the head or from its start, and a removed chain is not reported", async () => {
  await execute(
    url,
    `insert into chain_cursor (chain, number, block_id, final_number) values ('eip155:1', 1, '', 1)`,
    `update chain_cursor set reached_head_at = null, created_at = '${after(-20).toISOString()}'`,
  );
  const finality = { finalLagSeconds: 0, finalitySeconds: 1 };
  expect((await read(0)).chains).toEqual([{ chain: here, cursor: 5, lagSeconds: 20, ...finality }]);
  await execute(url, `update chain_cursor set reached_head_at = '${after(-3).toISOString()}'`);
  expect((await read(0)).chains).toEqual([{ chain: here, cursor: 5, lagSeconds: 3, ...finality }]);
});

test("a chain that was never reconciled has an age since the process started, and then since its reconciliation", async () => {
  expect((await read(4_000)).reconciliationAges).toEqual([{ chain: here, seconds: 4_000 }]);
  await execute(
    url,
    `insert into reconciliation (chain, account, asset, block_number, booked, in_flight, held, at)
      values ('${here}', 'treasury', '${here}/erc20:0x00', 5, 0, 0, 0, '${after(3_990).toISOString()}')`,
  );
  expect((await read(4_000)).reconciliationAges).toEqual([{ chain: here, seconds: 10 }]);
});

test("an accepted payment is overdue after its chain's time to finality and a minute, until its transfer ends", async () => {
  const merchant = { accountId: "acc_1", merchantId: "mrch_1" };
  // The chain of this test is final after one block of a second.
  const { id } = await insertTransferRow(db, merchant, { asset: `${here}/erc20:0x00` }, start);
  const overdue = async (seconds: number) => (await read(seconds)).overduePayments;
  expect(await overdue(61)).toEqual([{ chain: here, count: 0 }]);
  expect(await overdue(62)).toEqual([{ chain: here, count: 1 }]);
  await execute(url, `update transfer set state = 'ended' where id = '${id}'`);
  expect(await overdue(62)).toEqual([{ chain: here, count: 0 }]);
});

test("a payment on a chain that has left the networks file is overdue after an hour", async () => {
  const merchant = { accountId: "acc_1", merchantId: "mrch_1" };
  const { id } = await insertTransferRow(db, merchant, { asset: "eip155:7/erc20:0x00" }, start);
  const overdue = async (seconds: number) => (await read(seconds)).overduePayments;
  expect(await overdue(3_600)).toEqual([{ chain: here, count: 0 }]);
  expect(await overdue(3_601)).toEqual([
    { chain: here, count: 0 },
    { chain: "eip155:7", count: 1 },
  ]);
  await execute(url, `update transfer set state = 'ended' where id = '${id}'`);
  expect(await overdue(3_601)).toEqual([{ chain: here, count: 0 }]);
});

test("states without rows are reported as zero", async () => {
  expect((await read(0)).transfers).toEqual(
    ["ready", "assigned", "included"].map((state) => ({ chain: here, state, count: 0 })),
  );
});

test("failed bookings are counted by chain, and a chain without any is reported as zero", async () => {
  expect((await read(0)).failedBookings).toEqual([...chains.keys()].map((chain) => ({ chain, count: 0 })));
  await execute(
    url,
    `insert into failed_booking (chain, kind, subject, error, first_at, last_at, retry_at)
      select '${here}', 'transfer', 'trf_' || n, 'refused', now(), now(), now() from generate_series(1, 3) n`,
  );
  expect((await read(0)).failedBookings).toContainEqual({ chain: here, count: 3 });
});

test("the head of an audit day ages from the end of the day until the sink has accepted it", async () => {
  const entry = { actor: testActor, action: "account.created", subject: "acc_1", before: null, after: null };
  await insertAuditEntries(db, [{ ...entry, at: after(-86_400) }]);
  expect((await read(0)).auditHeadSeconds).toBe(0);
  const refusing = () => Promise.reject(new Error("the sink is down"));
  await expect(exportAuditHeads({ db, now: () => after(0), log }, refusing)).rejects.toThrow("the sink is down");
  expect((await read(90)).auditHeadSeconds).toBe(90);
  await exportAuditHeads({ db, now: () => after(90), log }, async () => undefined);
  expect((await read(90)).auditHeadSeconds).toBe(0);
});

test("an entry of the audit log ages until a head covers it", async () => {
  const entry = { actor: testActor, action: "account.created", subject: "acc_2", before: null, after: null };
  expect((await read(90)).auditEntrySeconds).toBe(0);
  await insertAuditEntries(db, [{ ...entry, at: after(0) }]);
  expect((await read(3 * 86_400)).auditEntrySeconds).toBe(3 * 86_400);
  await exportAuditHeads({ db, now: () => after(86_400), log }, async () => undefined);
  expect((await read(3 * 86_400)).auditEntrySeconds).toBe(0);
});

test("changes that were written without the service count for a day", async () => {
  expect((await read(0)).loginEntries).toBe(0);
  const entry = { actor: testActor, action: "account.created", subject: "acc_3", before: null, after: null };
  await insertAuditEntries(db, [{ ...entry, at: after(0) }]);
  await execute(
    url,
    `insert into audit_entry (at, actor_kind, actor_id, action, subject)
      values ('${after(0).toISOString()}', 'login', 'pay_api', 'app_id.created', 'app_1')`,
  );
  expect((await read(60)).loginEntries).toBe(1);
  expect((await read(86_400)).loginEntries).toBe(0);
});

test("work has its age in the queue that serves it, and in no other queue of its table", async () => {
  const ages = async () => {
    const { overdue } = await read(60);
    return Object.fromEntries(
      overdue.filter(({ seconds }) => seconds > 0).map(({ queue, seconds }) => [queue, seconds]),
    );
  };
  const others = await ages();
  const { "verify-signature": _, ...unconfirmed } = others;
  await execute(url, "update attempt set verification = 'wallet'");
  expect(await ages()).toEqual({ ...unconfirmed, "verify-contract-wallet": 60 });
  await execute(url, "delete from attempt");

  const merchant = { accountId: "acc_1", merchantId: "mrch_1" };
  const ready = (asset: string) => insertTransferRow(db, merchant, { asset, due_at: after(2) }, start);
  const { id: ofSolana } = await ready("solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1/token:mint");
  expect(await ages()).toEqual({ ...unconfirmed, "submit-solana": 60 });
  const { id: ofWallet } = await ready(`${here}/erc20:0x00`);
  await execute(url, `update transfer set smart_wallet = true where id = '${ofWallet}'`);
  expect(await ages()).toEqual({ ...unconfirmed, "submit-solana": 60, "relay-contract-wallet": 60 });
  const { id: ofKey } = await ready(`${here}/erc20:0x00`);
  expect(await ages()).toMatchObject({ "submit-solana": 60, "relay-contract-wallet": 60, "relay-transfers": 60 });
  await execute(
    url,
    `update transfer set state = 'ended', due_at = null where id in ('${ofSolana}', '${ofWallet}', '${ofKey}')`,
    `insert into webhook_event (id, account_id, mode, type, payment_id, at)
      values ('evt_1', 'acc_1', 'live', 'payment.expired', 'pay_1', '${start.toISOString()}')`,
    `insert into webhook_endpoint (id, account_id, mode, url, by_operator, key_id, secret, slow_until, created_at)
      values ('whe_1', 'acc_1', 'live', 'https://shop.example.test', false, 'k', '', '${after(120).toISOString()}', now())`,
    `insert into webhook_delivery (event_id, endpoint_id, priority, at, due_at)
      values ('evt_1', 'whe_1', 1, '${start.toISOString()}', '${start.toISOString()}')`,
  );
  expect(await ages()).toEqual({ ...unconfirmed, "deliver-slow-webhook": 60 });
  await execute(url, "update webhook_endpoint set slow_until = null");
  expect(await ages()).toEqual({ ...unconfirmed, "deliver-webhook": 60 });
  await execute(url, "update webhook_delivery set state = 'delivered', due_at = null");
});
