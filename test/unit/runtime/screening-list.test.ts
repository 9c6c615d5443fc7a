import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { openScreeningList, parseScreeningList } from "../../../runtime/screening-list.ts";

const folder = await mkdtemp(join(tmpdir(), "screening-"));
afterAll(() => rm(folder, { recursive: true, force: true }));
const one = `0x${"a1".repeat(20)}`;
const other = `0x${"b2".repeat(20)}`;

/** Opens a list with a fake clock and records its log lines. */
async function openList(text?: string) {
  const file = join(folder, `${Math.random()}.txt`);
  if (text !== undefined) await writeFile(file, text);
  const logged: string[] = [];
  let ms = 1_000_000;
  const note = (facts: object, message: string) => void logged.push(`${message} ${JSON.stringify(facts)}`);
  const list = openScreeningList(file, { log: { info: note, error: note } as never, now: () => new Date(ms) });
  const write = async (next: string, laterMs = 10_000) => {
    await writeFile(file, next);
    ms += laterMs;
  };
  return { list, write, logged };
}

test("an EVM address is blocked on every chain and an EVM account on its chain only, in any letter case", async () => {
  const { list } = await openList(
    `# ours\n${one.toUpperCase().replace("0X", "0x")}  # since 2026\n\neip155:1:${other}\n`,
  );
  expect([...list("eip155:1", [one, other])]).toEqual([one, other]);
  expect([...list("eip155:8453", [one, other])]).toEqual([one]);
});

test("a Solana account is blocked only in its exact spelling", async () => {
  const [here, there] = ["EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", "So11111111111111111111111111111111111111112"];
  const cluster = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp";
  const { list } = await openList(`${here}\n${cluster}:${there}\n${one}\n`);
  expect([...list(cluster, [here, there, here.toLowerCase()])]).toEqual([here, there]);
  expect([...list("solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1", [here, there])]).toEqual([here]);
  expect([...list("eip155:1", [one])]).toEqual([one]);
});

test("a changed list takes effect within seconds", async () => {
  const { list, write } = await openList("");
  expect([...list("eip155:1", [one])]).toEqual([]);
  await write(`${one}\n`);
  expect([...list("eip155:1", [one])]).toEqual([one]);
});

test("a changed list takes effect within seconds after the clock was set back by an hour", async () => {
  const { list, write } = await openList("");
  expect([...list("eip155:1", [one])]).toEqual([]);
  await write(`${one}\n`, -3_600_000);
  expect([...list("eip155:1", [one])]).toEqual([one]);
});

test("a missing list blocks every account", async () => {
  const { list } = await openList();
  expect(() => list("eip155:1", [one])).toThrow("cannot be read");
});

test("an invalid list blocks every account, logs the line, and takes effect again once it is corrected", async () => {
  const { list, write, logged } = await openList(`${one}\n`);
  list("eip155:1", [one]);
  await write(`${one}\n0x12\n`);
  expect(() => list("eip155:1", [other])).toThrow("line 2");
  expect(logged.at(-1)).toContain("line 2");
  await write(`${one}\n${other}\n`);
  expect([...list("eip155:1", [other])]).toEqual([other]);
});

test.each(["a name", "0x12", `${one}00`, `solana:x:${one}`, `${one} ${other}`])(
  "the list rejects the line %s",
  (line) => {
    expect(parseScreeningList(`\n${line}`)).toEqual({ error: "has no account in line 2" });
  },
);
