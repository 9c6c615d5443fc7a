import { mkdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { ask } from "../../../local/buyer-client.ts";
import { listen } from "../../support/listen.ts";
import { beginOnEvm, shopOf, sql, waitForRow } from "../bed-actions.ts";
import type { RunbookCase } from "../runbook-case.ts";
import type { TestBed } from "../test-bed.ts";

/** Inserts a payment of test mode that expired 800 days ago, with one event. */
async function insertOldPayment(bed: TestBed): Promise<void> {
  const { id } = await beginOnEvm(bed);
  const at = "now() - interval '800 days'";
  const old = `'pay_' || lpad(to_hex(extract(epoch from ${at})::bigint), 8, '0') || right('${id}', 24)`;
  // Without triggers: they allow new payments only.
  await sql(
    bed,
    `set session_replication_role = replica;
     insert into payment select (jsonb_populate_record(p, jsonb_build_object('id', ${old}, 'mode', 'test', 'state', 'expired',
       'created_at', ${at}, 'updated_at', ${at}, 'expires_at', ${at}, 'reference_id', 'old', 'option_id', null,
       'asset', null, 'settlement_id', null, 'owed_asset', null, 'owed_amount', null))).* from payment p where id = '${id}';
     insert into event (machine, subject, from_state, to_state, at)
       values ('payment', ${old}, 'requires_action', 'expired', ${at})`,
  );
}

/** Runbooks about webhooks, operators, the audit log and history. */
export const operatorCases: readonly RunbookCase[] = [
  {
    runbook: "webhooks-failing",
    alert: "WebhooksFailing",
    what: "an endpoint answers 500, and its events are made four hours old",
    shows: /"last_outcome":"500"|500/,
    async inject(bed) {
      let status = 500;
      const url = await listen(createServer((_request, response) => void response.writeHead(status).end()));
      await ask(shopOf(bed), "POST", "/v1/webhook-endpoints", { url });
      const { id } = await waitForRow(bed, `select id from webhook_endpoint where url = '${url}'`);
      await beginOnEvm(bed);
      await waitForRow(bed, "select 1 from webhook_delivery where state = 'pending' and attempts_made > 0");
      const pending = `webhook_delivery where state = 'pending' and endpoint_id = '${id}'`;
      await sql(bed, `update ${pending.replace(" where", " set at = at - interval '4 hours' where")}`);
      return {
        async end() {
          status = 200;
          await sql(bed, `update ${pending.replace(" where", " set due_at = now() where")}`);
        },
        cleanUp: () => ask(shopOf(bed), "DELETE", `/v1/webhook-endpoints/${id}`),
      };
    },
  },
  {
    runbook: "board-logins-refused",
    alert: "BoardLoginsRefused",
    what: "twelve logins with a wrong password",
    async inject({ stack }) {
      const body = new URLSearchParams({ name: "intruder", password: "wrong", code: "000000" });
      const headers = { "sec-fetch-site": "same-origin" };
      for (let count = 0; count < 12; count += 1) {
        await fetch(new URL("/login", stack.file().adminUrl), { method: "POST", body, headers });
        await pause(500);
      }
      return {};
    },
  },
  {
    runbook: "operator-requests",
    alert: "OperatorRequestsMany",
    what: "35 requests in the name of an operator are written with the board's rights, as by an attacker",
    shows: /"state":"refused"/,
    async inject(bed) {
      await sql(
        bed,
        'insert into operator select (jsonb_populate_record(o, \'{"name":"intruder"}\')).* from operator o limit 1',
      );
      await sql(
        bed,
        `insert into operator_request (id, operator, address, action, subject, args)
         select 'oreq_' || md5(n::text), 'intruder', '127.0.0.1', 'payments.retry', 'pay_unknown', '{}'
         from generate_series(1, 35) n`,
      );
      return { values: async () => ({ NAME: "intruder" }) };
    },
    repair: ["operators disable NAME"],
  },
  {
    runbook: "retention",
    alert: "RetentionBehind",
    what: "rows of a payment from before their retention, and a file in place of the folder for the export",
    shows: /event +30 +\d+ +1 /,
    async inject(bed) {
      await rm(bed.historyFolder, { recursive: true });
      await writeFile(bed.historyFolder, "");
      await insertOldPayment(bed);
      return {
        async end() {
          await rm(bed.historyFolder);
          await mkdir(bed.historyFolder);
        },
      };
    },
  },
  {
    runbook: "audit-log",
    alert: "AuditHeadNotExported",
    what: "the sink's file cannot be written; today's entries are made those of the day before yesterday, and their head two hours old",
    async inject(bed) {
      await rm(bed.auditSink, { force: true });
      await mkdir(bed.auditSink);
      await sql(
        bed,
        `alter table audit_entry disable trigger user;
         update audit_entry set day = day - 2, at = at - interval '2 days';
         alter table audit_entry enable trigger user`,
      );
      await waitForRow(bed, "select 1 from audit_head", 90_000);
      await sql(bed, "update audit_head set at = at - interval '2 hours'");
      return { end: () => rm(bed.auditSink, { recursive: true }) };
    },
  },
];
