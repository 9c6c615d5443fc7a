import { onInterrupt } from "./interrupt.ts";
import { createProgress } from "./progress.ts";
import { readSettings } from "./settings.ts";
import { type Stack, startStack } from "./stack.ts";

// `npm start`: the whole service on this machine, until Ctrl-C.

const progress = createProgress();
const interrupted = new AbortController();
const begin = async () => startStack(readSettings(process.env), progress.say, interrupted.signal);
const starting = begin();
onInterrupt(async () => {
  interrupted.abort();
  await (await starting.catch(() => undefined))?.stop();
  progress.print("stopped");
});

try {
  printSummary(await starting);
} catch (error) {
  // Interrupted: whoever did that tells how it ended.
  if (!interrupted.signal.aborted) {
    progress.print(`the stack did not start: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
}

function printSummary({ file, adminLogin }: Stack): void {
  const { baseUrl, adminUrl, metricsUrls, evm, solana, postgresUrl, redisUrl } = file();
  const lines = {
    api: baseUrl,
    "bull-board": `${adminUrl}  (user ${adminLogin.user}, password ${adminLogin.password})`,
    metrics: metricsUrls.join(" "),
    chain: `${evm.rpcUrl}  (${evm.chain}, ${evm.buyers.length} funded buyers)`,
    solana: `${solana.rpcUrl}  (${solana.chain}, ${solana.buyers.length} funded buyers)`,
    postgres: postgresUrl,
    redis: redisUrl,
  };
  progress.print("the stack is up; keys, buyers and process ids are in stack.json, logs beside it");
  for (const [name, value] of Object.entries(lines)) progress.print(`  ${name.padEnd(12)}${value}`);
  progress.print("`npm run admin -- --help` works on it; Ctrl-C stops it");
}
