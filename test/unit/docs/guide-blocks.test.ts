import { expect, test } from "vitest";
import { findOutput } from "../../support/guides/match-output.ts";
import { readBlocks } from "../../support/guides/read-blocks.ts";

const fence = "```";

test("the blocks of a guide say which file to save, what to type where, and what appears", () => {
  const page = [
    `${fence}js title=shop/shop.js`,
    "run();",
    fence,
    "1. In a list:",
    `   ${fence}sh terminal=shop keeps-running`,
    "   node shop.js",
    `   ${fence}`,
    `${fence}text output`,
    "ready",
    fence,
    "<!-- by hand: press the button -->",
    `${fence}sh not-run="needs a network"`,
    "git clone",
    fence,
  ].join("\n");
  expect(readBlocks(page)).toEqual([
    { kind: "file", title: "shop/shop.js", line: 2, text: "run();\n" },
    { kind: "commands", terminal: "shop", keepsRunning: true, line: 6, text: "node shop.js\n" },
    { kind: "output", terminal: "shop", line: 9, text: "ready\n" },
    { kind: "by hand", line: 11, text: "press the button" },
    { kind: "skipped", reason: "needs a network", line: 13, text: "git clone\n" },
  ]);
});

test("a block that says nothing of what a reader does with it is an error", () => {
  expect(() => readBlocks(`${fence}json\n{}\n${fence}`)).toThrow("line 2");
  expect(() => readBlocks(`${fence}sh\nls`)).toThrow("has no end");
});

const id = (digit: string) => `pay_${digit.repeat(32)}`;

test("an output may differ from the shown one in ids, times, ports and hashes, and in nothing else", () => {
  const shown = `http://127.0.0.1:8080/?pid=${id("1")} at 2026-11-23T01:16:58.594Z in 12 ms {"value":"1250"} 0x${"a".repeat(64)}`;
  const seen = `http://127.0.0.1:9999/?pid=${id("2")} at 2027-01-02T03:04:05Z in 7 ms {"value":"1250"} 0x${"b".repeat(64)}`;
  expect(findOutput(`${seen}\n`, shown, new Map())).toBe(seen.length + 1);
  expect(findOutput(seen.replace("1250", "1251"), shown, new Map())).toBeUndefined();
  expect(findOutput(`${seen} and more`, shown, new Map())).toBeUndefined();
});

test("an id that a guide shows twice is the same id in the output", () => {
  const bindings = new Map<string, string>();
  expect(findOutput(`${id("2")}\n${id("2")}\n`, `${id("1")}\n${id("1")}`, bindings)).toBeDefined();
  expect(findOutput(`${id("2")}\n${id("3")}\n`, `${id("4")}\n${id("4")}`, new Map())).toBeUndefined();
  expect(findOutput(`paid ${id("3")}\n`, `paid ${id("1")}`, bindings)).toBeUndefined();
  expect(findOutput(`paid ${id("2")}\n`, `paid ${id("1")}`, bindings)).toBeDefined();
});

test("an ellipsis stands for any text of a line, and on a line of its own for any lines", () => {
  expect(findOutput("begin 17 end\nx\ny\nlast\n", "begin … end\n…\nlast", new Map())).toBe(22);
  expect(findOutput("begin\nx\ny\n", "begin\n…\nlast", new Map())).toBeUndefined();
});
