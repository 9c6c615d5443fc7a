import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { openScreeningList, parseScreeningList } from "../../../ops/screening-list.ts";

const folder = await mkdtemp(join(tmpdir(), "screening-"));
afterAll(() => rm(folder, { recursive: true, force: true }));
const one = `0x${"a1".repeat(20)}`;
const other = `0x${"b2".repeat(20)}`;

/** A list with a clock that a test turns, and what it said. */
async function openList(text?: string) {
  const file = join(folder, `${Math.random()}.txt`);
  if (text !== undefined) await writeFile(file, text);
  const said: string[] = [];
  let ms = 1_000_000;
  const note = (facts: object, message: string) => void said.push(`${message} ${JSON.stringify(facts)}`);
  const list = openScreeningList(file, { log: { info: note, error: note } as never, now: () => new Date(ms) });
  const write = async (next: string, laterMs = 10_000) => {
    await writeFile(file, next);
    ms += laterMs;
  };
  return { list, write, said };
}

test("names an address on every chain, and an account of one chain there alone, in any spelling", async () => {
  const { list } = await openList(
    `# ours\n${one.toUpperCase().replace("0X", "0x")}  # since 2026\n\neip155:1:${other}\n`,
  );
  expect([...list("eip155:1", [one, other])]).toEqual([one, other]);
  expect([...list("eip155:8453", [one, other])]).toEqual([one]);
});

test("names accounts of Solana in their own spelling alone", async () => {
  const [here, there] = ["EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", "So11111111111111111111111111111111111111112"];
  const cluster = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp";
  const { list } = await openList(`${here}\n${cluster}:${there}\n${one}\n`);
  expect([...list(cluster, [here, there, here.toLowerCase()])]).toEqual([here, there]);
  expect([...list("solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1", [here, there])]).toEqual([here]);
  expect([...list("eip155:1", [one])]).toEqual([one]);
});

test("that changes counts within seconds", async () => {
  const { list, write } = await openList("");
  expect([...list("eip155:1", [one])]).toEqual([]);
  await write(`${one}\n`);
  expect([...list("eip155:1", [one])]).toEqual([one]);
});

test("that changes counts within seconds, also on a clock that was set back by an hour", async () => {
  const { list, write } = await openList("");
  expect([...list("eip155:1", [one])]).toEqual([]);
  await write(`${one}\n`, -3_600_000);
  expect([...list("eip155:1", [one])]).toEqual([one]);
});

test("that is not there lets nobody pass", async () => {
  const { list } = await openList();
  expect(() => list("eip155:1", [one])).toThrow("cannot be read");
});

test("that is broken lets nobody pass, says in which line, and counts again when it is mended", async () => {
  const { list, write, said } = await openList(`${one}\n`);
  list("eip155:1", [one]);
  await write(`${one}\n0x12\n`);
  expect(() => list("eip155:1", [other])).toThrow("line 2");
  expect(said.at(-1)).toContain("line 2");
  await write(`${one}\n${other}\n`);
  expect([...list("eip155:1", [other])]).toEqual([other]);
});

test.each(["a name", "0x12", `${one}00`, `solana:x:${one}`, `${one} ${other}`])("no account: %s", (line) => {
  expect(parseScreeningList(`\n${line}`)).toEqual({ error: "has no account in line 2" });
});
