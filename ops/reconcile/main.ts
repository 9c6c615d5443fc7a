import { Registry } from "prom-client";
import { openChains } from "../../chains/open-chains.ts";
import { checkSchema } from "../../db/check-schema.ts";
import type { Finding } from "../../db/findings.ts";
import { openDb } from "../../db/open.ts";
import { checkLedger } from "../../payments/accounting/check-ledger.ts";
import { type ReconcileLine, reconcileChain } from "../../payments/accounting/reconcile-chain.ts";
import { readArguments } from "../../runtime/command-arguments.ts";
import { ConfigError, readAdminConfig } from "../../runtime/config.ts";
import { createLog } from "../../runtime/log.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import { readNetworks } from "../../runtime/networks/read-networks.ts";
import { describeBriefly } from "../../runtime/redaction.ts";
import { describe, show } from "../admin/command.ts";

const help = `usage: npm run reconcile -- [options]

Compares the ledger with the chains: the treasury's tokens and the lanes' native balances, at a final and booked block, in
minor units. Then compares the rows of the database with each other, all of them however old: balances, settlements, refunds
and transfers with the ledger. Exits with 0 when everything agrees, 1 when something differs or a chain cannot be read, 2 for
wrong arguments.

  --chain ID   only this chain, for example eip155:8453 (default: all chains of the networks file)
  --block N    compare at this block of --chain, and no rows; the node must have its state
  --json       print one JSON document, for machines
  --help       print this text

DATABASE_URL and NETWORKS_FILE select the database and the chains.`;

/** Returns all lines, the rows that contradict each other, and whether every chain could be read and everything agrees. */
async function reconcile(args: {
  chain?: string;
  block?: number;
}): Promise<{ lines: ReconcileLine[]; findings: Finding[]; agrees: boolean }> {
  const config = readAdminConfig(process.env);
  if (!config.DATABASE_URL) throw new ConfigError("DATABASE_URL is missing");
  if (!config.NETWORKS_FILE) throw new ConfigError("NETWORKS_FILE is missing: it lists the chains");
  const networks = readNetworks(config.NETWORKS_FILE);
  const chains = openChains(networks, createMetrics(new Registry(), "worker"));
  if (args.chain !== undefined && !chains.has(args.chain))
    throw new ConfigError(`--chain: the networks file has no chain ${args.chain}`);
  const db = openDb(config.DATABASE_URL, { max: 2, applicationName: "pay-reconcile", statementTimeoutMs: 0 });
  const deps = { db, chains, now: () => new Date(), log: createLog({ level: "silent", role: "reconcile" }) };
  const lines: ReconcileLine[] = [];
  const findings: Finding[] = [];
  let agrees = true;
  try {
    const { refusal } = await checkSchema(db);
    if (refusal !== undefined) throw new ConfigError(refusal);
    for (const chain of args.chain === undefined ? chains.keys() : [args.chain]) {
      try {
        const compared = await reconcileChain(deps, { chain, block: args.block });
        if (compared.ok) lines.push(...compared.value);
        else throw new ConfigError(compared.message);
      } catch (error) {
        console.error(`${chain}: ${error instanceof ConfigError ? error.message : describeBriefly(error)}`);
        agrees = false;
      }
    }
    if (args.block === undefined) findings.push(...(await checkLedger(db, { since: undefined })));
  } finally {
    await db.destroy();
  }
  const differs = findings.length > 0 || lines.some(({ difference }) => difference !== 0n);
  return { lines, findings, agrees: agrees && !differs };
}

/** Returns a finding as a line, for example `balance_differs  mrch_1  eip155:1/erc20:0x…  found 5  expected 0`. */
function describeFinding({ kind, subject, asset, found, expected }: Finding): string {
  return `${kind}  ${subject}  ${asset}  found ${show(found)}  expected ${show(expected)}`;
}

const { values, refuse } = readArguments(help, {
  chain: { type: "string" },
  block: { type: "string" },
  json: { type: "boolean", default: false },
});
const { chain, block, json } = values;
if (block !== undefined && (!/^\d{1,15}$/.test(block) || chain === undefined))
  refuse("--block: expected a number, together with --chain");
try {
  const { lines, findings, agrees } = await reconcile({
    ...(chain === undefined ? {} : { chain }),
    ...(block === undefined ? {} : { block: Number(block) }),
  });
  if (json) console.log(show({ lines, findings }));
  else for (const line of [...describe(lines), ...findings.map(describeFinding)]) console.log(line);
  process.exitCode = agrees ? 0 : 1;
} catch (error) {
  const isUsage = error instanceof ConfigError;
  console.error(isUsage ? error.message : describeBriefly(error));
  process.exitCode = isUsage ? 2 : 1;
}
