import { fileURLToPath } from "node:url";
import { readArguments } from "../runtime/command-arguments.ts";
import { onInterrupt } from "./interrupt.ts";
import { createProgress } from "./progress.ts";
import { type Stack, startStack } from "./stack.ts";
import { registerStack, unregisterStack } from "./stack-registration.ts";
import { readSettings } from "./stack-settings.ts";
import { watchSources } from "./watch-sources.ts";

const help = `usage: npm start -- [options]

Runs the whole service on this machine until Ctrl-C: Postgres, Redis, Anvil and a local Solana cluster, the api, the workers, the
signer and bull-board. Prints the addresses, and writes them with keys for the API to stack.json. \`npm run dev\` is
\`npm start -- --watch\`.

  --watch         restart the api and the workers when a source file changes
  --build FOLDER  run a build (npm run build) in place of the sources
  --help          print this text

.env.example lists the settings. The data, the logs and stack.json are in .local, or in the folder that STACK_DIR names.`;

const { values } = readArguments(help, {
  watch: { type: "boolean", default: false },
  build: { type: "string" },
});
const built = values.build === undefined ? {} : { build: values.build };
const progress = createProgress();
const interrupted = new AbortController();
const begin = async () => startStack(readSettings(process.env), progress.say, { signal: interrupted.signal, ...built });
const starting = begin();
onInterrupt(async () => {
  interrupted.abort();
  const stack = await starting.catch(() => undefined);
  if (stack !== undefined) {
    await unregisterStack(process.env, stack.dir);
    await stack.stop();
  }
  progress.print("stopped");
});

try {
  const stack = await starting;
  await registerStack(process.env, stack.dir).catch((error: unknown) =>
    progress.print(`\`pay\` finds the stack in this folder only: ${error instanceof Error ? error.message : error}`),
  );
  printSummary(stack);
  if (values.watch) restartOnChange(stack);
} catch (error) {
  // After an interruption the handler above reports the end.
  if (!interrupted.signal.aborted) {
    progress.print(`the stack did not start: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
}

function restartOnChange(stack: Stack): void {
  let restarting = Promise.resolve();
  watchSources(fileURLToPath(new URL("../", import.meta.url)), (file) => {
    restarting = restarting.then(async () => {
      if (interrupted.signal.aborted) return;
      progress.print(`${file} changed: restarting the api and the workers`);
      await stack.restart();
    });
  });
  progress.print("the api and the workers restart when a source file changes");
}

function printSummary({ file, dir, adminLogin }: Stack): void {
  const { baseUrl, adminUrl, metricsUrls, evm, solana, postgresUrl, redisUrl } = file();
  const lines = {
    api: baseUrl,
    "bull-board": `${adminUrl}  (name ${adminLogin.name}, password ${adminLogin.password})`,
    "its TOTP": `${adminLogin.totp}  (for an authenticator app)`,
    metrics: metricsUrls.join(" "),
    chain: `${evm.rpcUrl}  (${evm.chain}, ${evm.buyers.length} funded buyers)`,
    solana: `${solana.rpcUrl}  (${solana.chain}, ${solana.buyers.length} funded buyers)`,
    postgres: postgresUrl,
    redis: redisUrl,
  };
  const variable = dir === ".local" ? "" : `STACK_DIR=${dir} `;
  progress.print(`the stack is up; ${dir}/stack.json has its keys, buyers and process ids, ${dir}/logs its logs`);
  for (const [name, value] of Object.entries(lines)) progress.print(`  ${name.padEnd(12)}${value}`);
  progress.print(`run \`${variable}npm run admin -- --help\` for operator commands; press Ctrl-C to stop`);
}
