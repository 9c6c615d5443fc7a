import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { time } from "../../../../ops/admin/command.ts";
import { createProgram, runAdmin } from "../../../../ops/admin/program.ts";

const silent = { env: {}, write: () => undefined, writeError: () => undefined };

/** Returns all commands that do something, with their whole names. */
function listCommands(command: Command, group: readonly string[] = []): { name: string; command: Command }[] {
  return command.commands.flatMap((one) => {
    const path = [...group, one.name()];
    return one.commands.length === 0 ? [{ name: path.join(" "), command: one }] : listCommands(one, path);
  });
}

const program = createProgram(silent);
const commands = listCommands(program);

/** Arguments that name something that exists. They come first, an owner before what it owns. */
const ids = [
  ...["account", "merchant", "destination", "change", "endpoint", "event", "app", "key", "policy", "id", "payment"],
  ...["refund", "exception", "failure", "chain", "name", "file", "pair"],
];

test("a group never acts itself, and every command prints JSON with --json", () => {
  for (const { name, command } of commands)
    expect(
      command.options.map(({ long }) => long),
      name,
    ).toContain("--json");
  for (const group of program.commands.filter((one) => one.commands.length > 0))
    expect(
      group.options.map(({ long }) => long),
      group.name(),
    ).toEqual([]);
});

test.each(commands)("$name names what it acts on before any value", ({ command }) => {
  const names = command.registeredArguments.map((one) => one.name());
  const firstValue = names.findIndex((name) => !ids.includes(name));
  expect(firstValue === -1 ? [] : names.slice(firstValue).filter((name) => ids.includes(name))).toEqual([]);
  expect(command.description()).toMatch(/^[a-z].*[^.]$/);
});

/** Returns the commands that the table of docs/operations.md names. A row names the group once, before its commands. */
function listDocumented(): string[] {
  const text = readFileSync(new URL("../../../../docs/operations.md", import.meta.url), "utf8");
  const section = text.split("\n## Command line\n")[1]?.split("\n## ")[0] ?? "";
  return [...section.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, names = ""]) => {
    const [[group, first] = [], ...others] = [...names.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name.split(" "));
    return [first, ...others.map(([name]) => name)].map((name) => `${group} ${name}`);
  });
}

test("the table of the documentation names every command, and no other one", () => {
  expect(listDocumented().toSorted()).toEqual(commands.map(({ name }) => name).toSorted());
});

test("an unknown group and an unknown command of a group are errors that name it", async () => {
  for (const args of [["payment"], ["payments", "shows"], ["exceptions", "lst"]]) {
    let text = "";
    const writeError = (line: string) => {
      text += line;
    };
    expect(await runAdmin(args, { ...silent, writeError })).toBe(2);
    expect(text).toBe(`unknown command '${args.at(-1)}'\n`);
  }
});

const timed: [string, ...string[]][] = [
  ["--since", "payments", "list"],
  ["--since", "webhooks", "replay", "whe_1"],
  ["--until", "webhooks", "replay", "whe_1", "--since", "2026-03-01"],
  ["--expires", "api-keys", "new", "--account", "acct_1", "--mode", "test", "--scopes", "refunds"],
  ["--until", "api-keys", "rotate", "key_1"],
];

describe.each(timed)("the time of %s in %s %s", (option, ...args) => {
  async function run(...given: string[]): Promise<{ code: number; text: string }> {
    let text = "";
    const write = (line: string) => {
      text += line;
    };
    return { code: await runAdmin([...args, ...given], { ...silent, write, writeError: write }), text };
  }

  test.each(["2026-03-01T12:00", "2026-03-01 12:00:00", "2026-02-30", "March 1, 2026", "12"])(
    "is refused without a zone or as no time: %s",
    async (given) => {
      const { code, text } = await run(option, given);
      expect(text).toContain(
        "expected a time with its zone, such as 2026-03-01T12:00:00Z, or a date, which begins at 00:00 UTC",
      );
      expect(code).toBe(2);
    },
  );

  test.each(["2026-03-01T12:00:00Z", "2026-03-01T13:00:00.5+01:00", "2026-03-01T12:00Z", "2026-03-01"])(
    "is accepted as %s",
    async (given) => {
      expect((await run(option, given)).text).toContain("DATABASE_URL is missing");
    },
  );

  test("is explained by the help", async () => {
    expect((await run("--help")).text.replaceAll(/\s+/g, " ")).toContain(
      "such as 2026-03-01T12:00:00Z, or a date in UTC",
    );
  });
});

test("a time is read as UTC, also a date", () => {
  expect(time("2026-03-01")).toBe("2026-03-01T00:00:00.000Z");
  expect(time("2026-03-01T13:00:00+01:00")).toBe("2026-03-01T12:00:00.000Z");
});

test("the help in a container names the command as it is called there", async () => {
  let text = "";
  const write = (line: string) => {
    text += line;
  };
  for (const args of [["--help"], ["payments", "show", "--help"]])
    await runAdmin(args, { ...silent, name: "admin", write });
  expect(text).toContain("Usage: admin");
  expect(text).toContain("  admin payments show pay_0123…");
  expect(text).not.toContain("npm run");
});
