import { expect } from "vitest";
import { MAX_PRIORITY_FEE, type SolanaChainKeys } from "../../local/solana-entry.ts";
import { tokenAccountOf } from "../../local/spl-tokens.ts";
import { listContradictions, readRows } from "../faults/database-rows.ts";
import { scanChain } from "../faults/evm-scan.ts";
import { type Evidence, findViolations } from "../faults/payment-invariants.ts";
import type { History } from "../faults/response-history.ts";
import { scanSolana } from "../faults/solana-scan.ts";
import { waitUntilIdle as wait } from "../faults/wait-until-idle.ts";
import type { TestChain } from "./evm-chain.ts";
import type { Fleet } from "./fleet.ts";
import type { TestSolana } from "./test-solana.ts";

/** Waits until every payment is final and every payout has arrived. */
export async function waitUntilIdle(fleet: Fleet, within = 180_000): Promise<void> {
  const { open } = await wait(fleet.databaseUrl, { except: [], withinMs: within });
  expect(open, `unfinished after ${within} ms`).toEqual([]);
}

/**
 * Expects the invariants of the fault runs to hold once the fleet is quiet, and `succeeded` payments to have succeeded
 * and been paid out. Reads Postgres by SQL and the chains by their logs and histories, without the service's code; the
 * service's own check of its rows must agree.
 */
export async function expectSound(
  fleet: Fleet,
  chain: TestChain | undefined,
  args: { succeeded: number; solana?: { chain: TestSolana; keys: SolanaChainKeys }; lost?: History["lost"] },
): Promise<void> {
  const [rows, evm, solana] = await Promise.all([
    readRows(fleet.databaseUrl),
    chain && collectEvm(chain),
    args.solana && collectSolana(args.solana.chain, args.solana.keys),
  ]);
  const history = { statuses: [], creations: [], payments: [], contractViolations: [], lost: args.lost ?? [] };
  expect(await listContradictions(fleet.databaseUrl)).toEqual([]);
  expect(findViolations({ rows, evm, solana, history, heights: {} })).toEqual([]);
  const paid = rows.payments.filter(({ mode, state }) => mode === "live" && state === "succeeded");
  expect(paid, "payments that succeeded").toHaveLength(args.succeeded);
  expect(rows.settlements, "payouts").toHaveLength(args.succeeded);
}

async function collectEvm({ url, since, contracts, keys }: TestChain): Promise<Evidence["evm"]> {
  const treasury = keys.treasury.address.toLowerCase();
  const accounts = keys.lanes.map(({ address }) => address);
  const scan = await scanChain({ url, since: Number(since), tokens: [contracts.token], treasury, accounts });
  // As the networks document of the tests has it.
  return { scan, treasury, feeCeiling: 200_000_000_000n };
}

async function collectSolana({ url, mint }: TestSolana, keys: SolanaChainKeys): Promise<Evidence["solana"]> {
  const treasury = keys.treasury.address;
  const treasuryAccount = tokenAccountOf(mint, treasury);
  const lanes = keys.lanes.map(({ address }) => address);
  const scan = await scanSolana({ url, mint: mint.address, treasuryAccount, lanes });
  return { scan, treasury, feeCeiling: MAX_PRIORITY_FEE };
}
