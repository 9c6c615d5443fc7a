import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

const program = `import { readArguments } from ${JSON.stringify(new URL("../../../runtime/command-arguments.ts", import.meta.url))};
const { values, refuse } = readArguments("usage: example", { count: { type: "string", default: "1" } });
if (values.count === "0") refuse("--count takes 1 or more");
console.log("count " + values.count);`;

const run = (...args: string[]) => {
  const ran = spawnSync(process.execPath, ["--input-type=module", "--eval", program, "--", ...args], {
    encoding: "utf8",
  });
  return { code: ran.status, stdout: ran.stdout, stderr: ran.stderr };
};

test("a command runs with its options, and prints its help when asked", () => {
  expect(run("--count", "3")).toEqual({ code: 0, stdout: "count 3\n", stderr: "" });
  expect(run("--help", "--count", "3")).toEqual({ code: 0, stdout: "usage: example\n", stderr: "" });
});

test("a command refuses unknown options, arguments without an option and wrong values with code 2, the reason and its help", () => {
  for (const [args, reason] of [
    [["--cuont", "3"], /^Unknown option '--cuont'/],
    [["3"], /^Unexpected argument '3'/],
    [["--count", "0"], /^--count takes 1 or more\n/],
  ] as const) {
    const { code, stdout, stderr } = run(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(reason);
    expect(stderr).toMatch(/\n\nusage: example\n$/);
  }
});
