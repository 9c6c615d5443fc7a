import { Registry } from "prom-client";
import { beforeEach, expect, test } from "vitest";
import { openChains } from "../../../../chains/open-chains.ts";
import { createPaymentReads } from "../../../../payments/maintenance/payment-gauges.ts";
import { reportDestinations } from "../../../../payments/merchants/report-destinations.ts";
import { createLog } from "../../../../runtime/log.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { parseNetworks } from "../../../../runtime/networks/read-networks.ts";
import type { DestinationsResponse } from "../../../../signer/protocol.ts";
import { execute } from "../../../support/execute-sql.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { networksDocument } from "../../api/start-api.ts";

// For how long the signer has not been told what it should know.

const { db, url } = await openTestDb(1);
const chains = openChains(parseNetworks(networksDocument), createMetrics(new Registry(), "worker"));
const log = createLog({ level: "silent", role: "worker" });
const start = new Date("2026-03-01T12:00:00Z");
const after = (seconds: number) => new Date(start.getTime() + seconds * 1_000);
const iso = (seconds: number) => `'${after(seconds).toISOString()}'`;
const HOUR = 3_600;

const read = async (seconds: number) => {
  const reads = createPaymentReads({ db, chains, now: () => after(seconds), startedAt: start });
  return (await reads.destinations()).unreportedSeconds;
};

/** Reports at a time, to a signer that answers or not. */
const report = (seconds: number, signer: "answers" | "is down") => {
  const all: DestinationsResponse = { destinations: [], statements: [{ ok: true, detail: "rejected" }] };
  const claimDestinations = async () => (signer === "answers" ? all : undefined);
  return reportDestinations({ db, log, now: () => after(seconds), signer: { claimDestinations } });
};

const asset = "eip155:31337/erc20:0x1111111111111111111111111111111111111111";
const account = "eip155:31337:0x2222222222222222222222222222222222222222";
const publicKey = "ab".repeat(32);

const requestChange = (merchant: string, seconds: number) =>
  execute(
    url,
    `insert into destination_change (id, merchant_id, destination_id, asset, after, state, requester_kind, requester_id,
      created_at, applies_at) values ('dchg_${merchant}', '${merchant}', 'dst_1', '${asset}', '${account}', 'requested', 'key', 'key_1',
      ${iso(seconds)}, ${iso(seconds + 72 * HOUR)})`,
  );
const registerKey = (merchant: string, seconds: number) =>
  execute(
    url,
    `insert into approval_key (merchant_id, public_key, registrar_kind, registrar_id, created_at, applies_at)
      values ('${merchant}', '${publicKey}', 'key', 'key_1', ${iso(seconds)}, ${iso(seconds)})`,
  );
const storeStatement = (subject: string, seconds: number) =>
  execute(
    url,
    `insert into signed_statement (subject, text, signer, signature, created_at)
      values ('${subject}', 'text ${subject}', 'ana', '${"0".repeat(128)}', ${iso(seconds)})`,
  );

beforeEach(() =>
  execute(
    url,
    "set session_replication_role = replica",
    ...[
      "account",
      "merchant",
      "destination_change",
      "approval_key",
      "signed_statement",
      "webhook_event",
      "settlement_destination",
    ].map((name) => `delete from ${name}`),
    "insert into account (id, name, created_at) values ('acc_1', 'Shop', now())",
    `insert into merchant (id, account_id, mode, name, email, created_at)
      values ('live', 'acc_1', 'live', 'Shop', 'shop@example.test', now()), ('test', 'acc_1', 'test', 'Shop', 'shop@example.test', now())`,
  ),
);

test("a change ages from its request until the signer has answered its report", async () => {
  expect(await read(0)).toBe(0);
  await requestChange("live", 0);
  await report(100, "is down");
  expect(await read(200)).toBe(200);
  await report(200, "answers");
  expect(await read(300)).toBe(0);
});

test.each([
  [
    "rejection",
    (at: number) =>
      `state = 'rejected', rejection = 'decided', decider_kind = 'operator', decider_id = 'ana', decided_at = ${iso(at)}`,
  ],
  ["application", (at: number) => `state = 'applied', applied_at = ${iso(at)}`],
])("the %s of a change that was requested days ago ages from its own time", async (_what, end) => {
  await execute(
    url,
    "set session_replication_role = replica",
    `insert into settlement_destination (id, merchant_id, asset, destination, created_at, updated_at)
      values ('dst_1', 'live', '${asset}', 'eip155:31337:0x3333333333333333333333333333333333333333', now(), now())`,
  );
  await requestChange("live", 0);
  await report(1, "answers");
  const ended = 70 * HOUR;
  await execute(url, `update destination_change set ${end(ended)}, reported_at = null`);
  expect(await read(ended)).toBe(0);
  await report(ended + 100, "is down");
  expect(await read(ended + 100)).toBe(100);
  await report(ended + 101, "answers");
  expect(await read(ended + 101)).toBe(0);
});

test("an approval does not reset the age of a change that was never reported", async () => {
  await requestChange("live", 0);
  await execute(
    url,
    `update destination_change set state = 'approved', decider_kind = 'operator', decider_id = 'ana', decided_at = ${iso(500)}`,
  );
  expect(await read(500)).toBe(500);
});

test("a key ages from its registration, from its revocation, and when its daily report is an hour late", async () => {
  await registerKey("live", 0);
  expect(await read(60)).toBe(60);
  await report(60, "answers");
  expect(await read(60 + 25 * HOUR)).toBe(0);
  expect(await read(200 + 25 * HOUR)).toBe(140);
  await execute(
    url,
    `update approval_key set reported_at = null, revoked_at = ${iso(30 * HOUR)}, revoker_kind = 'key', revoker_id = 'key_1'`,
  );
  expect(await read(30 * HOUR + 7)).toBe(7);
  await report(30 * HOUR + 8, "answers");
  expect(await read(30 * HOUR + 8)).toBe(0);
});

test("a signed decision about a change ages until the signer has answered, and one about a refund is not reported here", async () => {
  await requestChange("live", 0);
  await report(1, "answers");
  await storeStatement("dchg_live", 1_000);
  await storeStatement("rfd_1", 500);
  await report(1_050, "is down");
  expect(await read(1_090)).toBe(90);
  await report(1_090, "answers");
  expect(await read(2_000)).toBe(0);
});

test("what test merchants ask for never counts", async () => {
  await requestChange("test", 0);
  await registerKey("test", 0);
  await storeStatement("dchg_test", 0);
  expect(await read(500)).toBe(0);
});
