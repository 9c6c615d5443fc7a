import { expect, test } from "vitest";
import { readRebuildOptions } from "../../../signer/rebuild-options.ts";

const [one, two] = ["0x00000000000000000000000000000000000000a1", "0x00000000000000000000000000000000000000a2"];

test("former treasuries are named for each chain, or said to be none", () => {
  const args = ["--former", `eip155:1=${one}`, "--former", `eip155:1=${two}`, "--former", "eip155:10=none"];
  expect(readRebuildOptions([...args, "--from", "eip155:1=7", "--leave", "eip155:1/erc20:0xAB=5"])).toEqual({
    former: new Map([
      ["eip155:1", [one, two]],
      ["eip155:10", []],
    ]),
    from: new Map([["eip155:1", 7]]),
    accepted: new Set(),
    left: new Map([["eip155:1/erc20:0xab", 5n]]),
  });
});

test.each([
  ["--former", "eip155:1"],
  ["--former", "eip155:1="],
  ["--from", "eip155:1=latest"],
  ["--leave", "eip155:1/erc20:0xab=0.5"],
  ["--formers", "eip155:1=none"],
])("the argument %s %s is an error, and not a rebuild without it", (name, value) => {
  expect(() => readRebuildOptions([name, value])).toThrow(/expected|Unknown option/);
});

test("a chain that had none and some former treasuries is an error", () => {
  expect(() => readRebuildOptions(["--former", "eip155:1=none", "--former", `eip155:1=${one}`])).toThrow(
    "there was none",
  );
});
