import { expect } from "vitest";
import { scanChain } from "../faults/chain-scan.ts";
import { findViolations } from "../faults/invariants.ts";
import { waitQuiet as wait } from "../faults/quiet.ts";
import { readRows } from "../faults/rows.ts";
import type { TestChain } from "./chain.ts";
import type { Fleet } from "./fleet.ts";

/** Waits until every payment has its end and every payout has arrived. */
export async function waitQuiet(fleet: Fleet, within = 60_000): Promise<void> {
  const { open } = await wait(fleet.databaseUrl, { except: [], withinMs: within });
  expect(open, `unfinished after ${within} ms`).toEqual([]);
}

/**
 * What must hold when the dust has settled, asked of Postgres by SQL and of the chain by its logs, with no code of the
 * service in between: the invariants of the fault runs, and so many payments that succeeded and were paid out.
 */
export async function expectSound(fleet: Fleet, chain: TestChain, args: { succeeded: number }): Promise<void> {
  const treasury = chain.keys.treasury.address.toLowerCase();
  const accounts = chain.keys.lanes.map(({ address }) => address);
  const [rows, scan] = await Promise.all([
    readRows(fleet.databaseUrl),
    scanChain({ url: chain.url, since: Number(chain.since), tokens: [chain.contracts.token], treasury, accounts }),
  ]);
  const history = { told: [], creations: [], asked: [], offContract: [] };
  expect(findViolations({ rows, chain: scan, treasury, feeCeiling: FEE_CEILING, history })).toEqual([]);
  const paid = rows.payments.filter(({ mode, state }) => mode === "live" && state === "succeeded");
  expect(paid, "payments that succeeded").toHaveLength(args.succeeded);
  expect(rows.settlements, "payouts").toHaveLength(args.succeeded);
}

/** Wei per gas, as the networks document of the tests has it. */
const FEE_CEILING = 200_000_000_000n;
