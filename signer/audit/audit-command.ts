import { parseArgs } from "node:util";
import { readHeadLines } from "../../runtime/audit-head-lines.ts";
import { ConfigError, type SignerConfig } from "../../runtime/config.ts";
import { readArgument } from "../read-argument.ts";
import { openStore, type Store } from "../store.ts";
import { readEntries } from "./entries.ts";
import { verifyLog } from "./verify-log.ts";

// `signer audit list` and `signer audit verify [--heads FILE]`, on the signer's machine, beside a signer that runs or without one.

/** Entries that are read at once. */
const BATCH = 1_000;

/** Prints the signer's audit log, or verifies it; then the exit code is 1 when something is wrong. */
export function runAuditCommand(config: SignerConfig, [command = "", ...args]: readonly string[]): void {
  if (command === "list") printEntries(openStore(config.SIGNER_STORE));
  else if (command === "verify") verify(openStore(config.SIGNER_STORE), args);
  else throw new ConfigError("expected `audit list` or `audit verify [--heads FILE]`");
}

/** Prints one entry a line, the oldest first, with all that its hash covers. */
function printEntries(store: Store): void {
  let batch = readEntries(store, { after: undefined, limit: BATCH });
  for (; batch.length > 0; batch = readEntries(store, { after: batch.at(-1), limit: BATCH }))
    for (const { hash, ...entry } of batch) console.log(JSON.stringify({ ...entry, hash: hash.toString("hex") }));
}

function verify(store: Store, args: readonly string[]): void {
  const { heads: file } = parseArgs({ args: [...args], options: { heads: { type: "string" } } }).values;
  const exported = file === undefined ? [] : readHeadLines(readArgument(file), "signer");
  if ("problem" in exported) throw new ConfigError(`--heads: ${exported.problem}`);
  const { entries, head, findings } = verifyLog(store, exported);
  console.log(`${entries} entries${head ? `, the newest is ${head.day}/${head.sequence} with hash ${head.hash}` : ""}`);
  for (const finding of findings) console.log(finding);
  if (findings.length > 0) process.exitCode = 1;
}
