// Runs an example against the local stack: `node run-locally.js PORT COMMAND…`. It sets the environment that `pay env`
// prints, and `pay listen` forwards the webhooks to the example. In production you set the same variables yourself, and
// the service sends the webhooks to the endpoint that you have registered.

import { spawn, spawnSync } from "node:child_process";

const [usualPort, program, ...args] = process.argv.slice(2);
const port = process.env.PORT ?? usualPort;
const { error, status, stdout } = spawnSync("pay", ["env", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
if (error) throw error;
if (status !== 0) process.exit(1); // pay has printed why
const env = { ...process.env, ...JSON.parse(String(stdout)), PORT: port };

// Each program has a process group of its own, so that its own children end with it.
const start = (name, ...line) => spawn(name, line, { env, stdio: "inherit", detached: true });
const children = [start(program, ...args), start("pay", "listen", "--forward-to", `http://127.0.0.1:${port}/hooks`)];

let isEnding = false;
function end(code) {
  if (isEnding) return;
  isEnding = true;
  process.exitCode = code;
  const running = children.filter(({ pid, exitCode, signalCode }) => pid && exitCode === null && signalCode === null);
  for (const { pid } of running) process.kill(-pid, "SIGTERM");
}
for (const child of children) {
  child.once("exit", (code) => end(code ?? 1));
  child.once("error", ({ message }) => {
    console.error(message);
    end(1);
  });
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => end(0));
