import { Command } from "commander";
import { describe, expect, test } from "vitest";
import { type AddAction, createAddAction, describe as print, toJsonLine } from "../../../../ops/admin/command.ts";
import { findUnitIn, withUnits } from "../../../../payments/readable-amounts.ts";
import { parseNetworks } from "../../../../runtime/networks/read-networks.ts";

const address = `0x${"b1".repeat(20)}`;
const asset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
const domain = { name: "USD Coin", version: "2" };
const entry = { asset, symbol: "USDC", name: "USD Coin", decimals: 6, kind: "eip3009", peg: "iso4217/USD", domain };
const owner = { address, key: { env: "KEY" } };
const networks = parseNetworks({
  deployment: "test",
  chains: [
    {
      ...{
        chain: "eip155:31337",
        name: "Local",
        rpc: [{ name: "one", url: "http://127.0.0.1:1" }],
        multicall: address,
      },
      ...{ blockMs: 1_000, pollMs: 100, finality: { blocks: 1 }, treasury: owner, lanes: [owner], assets: [entry] },
      fees: { maxFeePerGas: "1000000000", priorityFeePerGas: "1" },
    },
  ],
});

test("people read amounts with decimals and symbol, and those of an unknown asset in minor units", () => {
  const unknown = { asset: "eip155:1/erc20:0x1", amount: 5n };
  const row = {
    asset,
    gross: 12_500_000n,
    change: -5n,
    at: new Date(0),
    paid: `7 caip19/${asset}`,
    total: "1250 iso4217/USD",
  };
  expect(
    withUnits(
      [row, unknown, { owed: [row] }, { gasUsed: 21_000n }],
      findUnitIn(networks.chains.flatMap(({ assets }) => [...assets])),
    ),
  ).toMatchObject([
    {
      asset,
      gross: "12.500000 USDC",
      change: "-0.000005 USDC",
      at: new Date(0),
      paid: "0.000007 USDC",
      total: "12.50 USD",
    },
    unknown,
    { owed: [{ gross: "12.500000 USDC" }] },
    { gasUsed: 21_000n },
  ]);
});

test("rows that do not fit into 120 columns are printed one after the other", () => {
  const narrow = [{ id: "a", at: "b" }];
  expect(print(narrow)).toEqual(["id  at", "a   b"]);
  const wide = [
    { id: "a", text: "x".repeat(118) },
    { id: "b", text: "y" },
  ];
  expect(print(wide)).toEqual(["id    a", `text  ${"x".repeat(118)}`, "", "id    b", "text  y"]);
});

test("text of strangers is printed on its own line, and cannot move the cursor or reverse what follows", () => {
  const text = "Order 7\nclosing  0\u001b[2K\u202e";
  expect(print({ description: text, metadata: { note: "\u009b2J" } })).toEqual([
    "description  Order 7 closing  0\ufffd[2K\ufffd",
    'metadata     {"note":"\ufffd2J"}',
  ]);
});

/** What a stranger may write: it clears a terminal's screen, reverses what follows, and ends the line. */
const hostile = "Order 7\u009b2J\u202e\u007f\u2028";
const cleaned = "Order 7\ufffd2J\ufffd\ufffd ";

describe("a command that prints texts of strangers", () => {
  const csv = [`id,"two\n${hostile}"`];
  async function run(
    output: Awaited<ReturnType<Parameters<AddAction>[1]>>,
    { args = [], isTerminal = false }: Run = {},
  ) {
    const lines: string[] = [];
    const program = new Command().exitOverride();
    const addAction = createAddAction({}, (line) => lines.push(line), { isTerminal });
    addAction(program.command("print"), async () => output);
    await program.parseAsync(["print", ...args], { from: "user" });
    return lines.join("\n");
  }
  type Run = { args?: string[]; isTerminal?: boolean };

  test("shows no control characters to people", async () => {
    for (const isTerminal of [true, false])
      expect(await run({ value: {}, lines: [`differs: ${hostile}`, ""] }, { isTerminal })).toBe(
        `differs: ${cleaned}\n`,
      );
  });

  test("escapes them in JSON, which has the same values", async () => {
    const text = await run({ value: { hostile, list: [1n] } }, { args: ["--json"] });
    expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202e\u2028]/u);
    expect(JSON.parse(text)).toEqual({ hostile, list: ["1"] });
    expect(await run({ value: {}, lines: [toJsonLine({ hostile })] })).toBe(toJsonLine({ hostile }));
    expect(JSON.parse(toJsonLine({ hostile }))).toEqual({ hostile });
  });

  test("writes CSV to a file as it is, and shows none of them on a terminal", async () => {
    expect(await run({ value: {}, csv })).toBe(csv[0]);
    expect(await run({ value: {}, csv }, { isTerminal: true })).toBe(`id,"two ${cleaned}"`);
  });
});
