import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { openChains } from "../../../../chains/open-chains.ts";
import { openDb } from "../../../../db/open.ts";
import { takeDueWork } from "../../../../payments/maintenance/take-due-rows.ts";
import { createLog } from "../../../../runtime/log.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { parseNetworks } from "../../../../runtime/networks/read-networks.ts";
import { openEpoch } from "../../../../transfers/database-epoch.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { execute } from "../../../support/execute-sql.ts";
import { createDatabase } from "../../../support/test-database.ts";
import { makeEpochMemory } from "../../../support/test-deps.ts";
import { networksDocument } from "../../api/start-api.ts";

const url = await createDatabase();
const db = openDb(url, { max: 2 });
addCleanup(() => db.destroy());
const log = createLog({ level: "silent", role: "worker" });
const epoch = openEpoch({ db, memory: makeEpochMemory(), log });
const start = new Date("2026-03-01T12:00:00Z");
const after = (seconds: number) => new Date(start.getTime() + seconds * 1_000);
const chains = openChains(parseNetworks(networksDocument), createMetrics(new Registry(), "worker"));
const here = "eip155:31337";
const sweepAt = async (seconds: number) => {
  const now = () => after(seconds);
  await execute(
    url,
    `update chain_cursor set reached_head_at = '${now().toISOString()}',
    epoch = (select id from database_epoch) where chain = '${here}'`,
  );
  const deps = { db, chains, now, startedAt: after(-60), epoch };
  return { payments: await takeDueWork(deps, "payments"), settlements: await takeDueWork(deps, "settlements") };
};

await execute(
  url,
  "insert into account (id, name, created_at) values ('acc_1', 'Shop', now())",
  `insert into merchant (id, account_id, mode, name, email, created_at)
    values ('mrch_1', 'acc_1', 'live', 'Shop', 'shop@example.test', now())`,
  `insert into payment (id, account_id, merchant_id, mode, unit, value, state, created_at, updated_at, expires_at, due_at)
    values ('pay_1', 'acc_1', 'mrch_1', 'live', 'iso4217/USD', 100, 'requires_action', now(), now(),
      '${start.toISOString()}', '${start.toISOString()}')`,
  `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, due_at)
    values ('stl_1', 'mrch_1', 'live', '${here}/erc20:0x00', 1, 100, 'due',
      '${after(-2).toISOString()}', '${start.toISOString()}')`,
  `insert into chain_cursor (chain, number, block_id, final_number) values ('${here}', 5, '0x05', 5)`,
);

test("the sweep enqueues an overdue settlement and a payment that has reached its deadline at once", async () => {
  expect(await sweepAt(-1)).toMatchObject({ payments: [] });
  expect(await sweepAt(0)).toMatchObject({
    payments: [{ id: "pay_1", retry: 1 }],
    settlements: [{ ids: ["stl_1"], retry: 1 }],
  });
});

test("the sweep enqueues the same row again with growing delays", async () => {
  expect(await sweepAt(0)).toMatchObject({ payments: [], settlements: [] });
  expect(await sweepAt(60)).toMatchObject({ payments: [{ retry: 2 }], settlements: [{ retry: 2 }] });
});
