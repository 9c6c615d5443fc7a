import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";

const interrupt = new URL("../../../local/interrupt.ts", import.meta.url).href;

/** Prints lines until it is stopped, and one more when it stops. */
const program = `import { onInterrupt } from "${interrupt}";
  onInterrupt(async () => {
    console.error("stopping");
    await new Promise((resolve) => setTimeout(resolve, 50));
  });
  setInterval(() => console.log("running"), 10);`;

test("a command whose output nothing reads any more stops, and ends with code 1", async () => {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  await once(child.stdout, "data");
  const ended = once(child, "exit");
  child.stdout.destroy();
  child.stderr.destroy();
  expect(await ended.finally(() => child.kill("SIGKILL"))).toEqual([1, null]);
});
