import { z } from "zod";
import { ConfigError, type SignerConfig } from "../runtime/config.ts";
import { createLog } from "../runtime/log.ts";
import { readNetworks } from "../runtime/networks/read-networks.ts";
import { listWaitingKeys } from "./approval-keys.ts";
import { recordLimits } from "./audit/limits-changes.ts";
import { decideStatements } from "./claim-destinations.ts";
import { listWaiting } from "./destinations.ts";
import { openLimits } from "./limits.ts";
import { type Statement, statement } from "./protocol.ts";
import { readJsonArgument } from "./read-argument.ts";
import { findHoldEnd } from "./stops.ts";
import { openStore } from "./store.ts";

// The commands by which an operator decides on the signer's own machine, beside a signer that runs or without one.

const statementFile = z.union([statement.transform((one) => [one]), z.array(statement)]);

/**
 * Decides by the signed statement of a file, or by each of a list, and prints one result for each. The exit code is 1 when one
 * decides nothing. Throws ConfigError for a file that holds no statements.
 */
export function decideFile(config: SignerConfig, [file = ""]: readonly string[]): void {
  // The results are on stdout.
  const log = createLog({ level: config.LOG_LEVEL, role: "signer" }, process.stderr);
  const { deployment } = readNetworks(config.NETWORKS_FILE);
  const statements = readStatements(file);
  const [store, now] = [openStore(config.SIGNER_STORE), () => new Date()];
  const readLimits = openLimits(config.SIGNER_LIMITS_FILE, { log, observe: recordLimits({ store, now }) });
  const deps = { store, readLimits, deployment, log, now };
  const results = decideStatements(deps, statements);
  if (!results) throw new ConfigError("the limits file is missing or invalid");
  for (const result of results) console.log(JSON.stringify(result));
  if (results.some(({ ok }) => !ok)) process.exitCode = 1;
}

/**
 * Prints the destinations and approval keys that wait, from the signer's own records. What the signer holds back because it was
 * stopped says so; while the signer is still stopped, the time counts from now on.
 */
export function showWaiting(config: SignerConfig): void {
  const store = openStore(config.SIGNER_STORE);
  const holdEnd = findHoldEnd(store, new Date());
  for (const { id: claim, appliesAt, ...subject } of [...listWaiting(store), ...listWaitingKeys(store)]) {
    const isHeld = appliesAt < holdEnd;
    const at = new Date(isHeld ? holdEnd : appliesAt).toISOString();
    console.log(
      JSON.stringify({ claim, ...subject, appliesAt: at, ...(isHeld && { held: "the signer was stopped" }) }),
    );
  }
}

function readStatements(file: string): Statement[] {
  const parsed = statementFile.safeParse(readJsonArgument(file));
  if (!parsed.success) throw new ConfigError(`${file} holds neither a signed statement nor a list of them`);
  return parsed.data;
}
