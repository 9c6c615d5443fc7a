import { join } from "node:path";
import { readArguments } from "../runtime/command-arguments.ts";
import { runDemo } from "./demo-run.ts";
import { onInterrupt } from "./interrupt.ts";
import { createProgress } from "./progress.ts";
import { type Stack, startStack } from "./stack.ts";
import { readSettings, withFreePorts } from "./stack-settings.ts";

const help = `usage: npm run demo

Starts a stack of its own, beside any that \`npm start\` runs, pays on EVM and Solana, prints what happened, and stops the stack.
Takes less than a minute. Exits with 0 when all of it happened, and with 1 otherwise.

  --help  print this text

docs/demo.md explains the output. The logs are in .local/demo/logs.`;

readArguments(help, {});
const progress = createProgress();
const interrupted = new AbortController();
let logs = "";

/** Starts a stack in its own folder and on its own ports, beside any stack that `npm start` runs. */
async function begin(): Promise<Stack> {
  const settings = readSettings(process.env);
  const own = await withFreePorts({ ...settings, SIGNER: "embedded", STACK_DIR: join(settings.STACK_DIR, "demo") });
  logs = `\nThe logs are in ${join(own.STACK_DIR, "logs")}.`;
  return await startStack(own, progress.say, { signal: interrupted.signal });
}

const starting = begin();
const stopAll = async (): Promise<void> => (await starting.catch(() => undefined))?.stop();
onInterrupt(async () => {
  interrupted.abort();
  await stopAll();
  progress.print("stopped");
  process.exit(130);
});

let failure: unknown;
try {
  await runDemo(await starting, progress);
} catch (error) {
  failure = error;
}
if (!interrupted.signal.aborted) {
  await stopAll();
  if (failure === undefined) progress.print("The demo is done.");
  else progress.print(`The demo failed: ${describe(failure)}${logs}`);
  process.exit(failure === undefined ? 0 : 1);
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${describe(error.cause)})` : error.message;
}
