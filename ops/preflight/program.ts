import { existsSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { ConfigError } from "../../runtime/config.ts";
import { readNetworks } from "../../runtime/networks/read-networks.ts";
import { describeBriefly } from "../../runtime/redaction.ts";
import { worstStatus } from "./finding.ts";
import { runPreflight } from "./preflight.ts";
import { toJson, toTable } from "./print-findings.ts";

/** Where preflight reads its settings and writes its output. `now` is this machine's clock. */
export type Io = {
  env: NodeJS.ProcessEnv;
  now: () => Date;
  write: (text: string) => void;
  writeError: (text: string) => void;
  /** Shows what is being checked; an empty text ends it. */
  showProgress: (text: string) => void;
};

const help = `
It checks each chain and endpoint of the networks file: chain ids, heads, latency, log ranges, tokens, our contracts, the
gas of the lanes, the accounts on Solana, the keys, price feeds, screening, and this machine's clock. It sends no
transaction, needs no database, and prints no secret: of an endpoint only the host.

Run it on each machine that has keys, with the variables of its processes: where the workers will run with SIGNER, which
checks the keys of the lanes, and where the signer will run with SIGNER_LISTEN, which checks those of the treasuries. With both
variables, with neither, and with SIGNER=embedded it checks every key.

From the environment it reads these variables, the keys that the networks file names, and SCREENING_LIST_FILE.

A row is ok, a warning (payments work, but read it) or an error (do not go live), each with what to do about it.
Exits with 0 without errors, 1 when there is one, 2 for wrong arguments or an invalid networks file.

Example:
  npm run preflight -- --networks networks.json`;

/** Runs preflight and returns its exit code: 0 without errors, 1 with one, 2 for wrong arguments. Never throws. */
export async function runProgram(args: readonly string[], io: Io): Promise<number> {
  const program = new Command("npm run preflight --")
    .description("Checks a networks file against the chains before the service goes live.")
    .requiredOption("--networks <file>", "the networks file")
    .option("--json", "print one JSON document, for machines")
    .addHelpText("after", help)
    .configureOutput({ writeOut: io.write, writeErr: (text) => io.writeError(text.replace(/^error: /, "")) })
    .exitOverride();
  try {
    program.parse(args, { from: "user" });
    const { networks: file, json } = program.opts<{ networks: string; json?: true }>();
    if (!existsSync(file)) throw new ConfigError(`--networks: there is no file ${file}`);
    const networks = readNetworks(file);
    let started = 0;
    const findings = await runPreflight({ networks, env: io.env, now: io.now }, (text) => {
      started += 1;
      io.showProgress(`check ${started}: ${text}`);
    });
    io.showProgress("");
    for (const line of json ? [toJson(findings)] : toTable(findings)) io.write(`${line}\n`);
    return worstStatus(findings) === "error" ? 1 : 0;
  } catch (error) {
    // commander has printed its own errors already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    io.writeError(`${error instanceof ConfigError ? error.message : describeBriefly(error)}\n`);
    return error instanceof ConfigError ? 2 : 1;
  }
}
