import { createHash } from "node:crypto";
import { mkdir, open, rename } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { RemovedRows } from "../../db/queries/retention.ts";
import type { RetainedRelation } from "../../db/tables.ts";

/** Stores rows outside of the database before they are removed. Throws when it is not certain that they are stored. */
export type ExportHistory = (batch: {
  relation: RetainedRelation;
  firstPayment: string;
  rows: readonly RemovedRows[];
}) => Promise<void>;

const compress = promisify(gzip);

/**
 * Returns a function that writes each batch as a file `<table>/<month>/<first payment>-<hash>.jsonl.gz` of a folder, with one
 * line `{"table":…,"row":…}` for each row. The month is that of the first payment, and the hash is that of the lines. So a
 * batch that is repeated after a crash writes the same file, and no batch overwrites the file of another one.
 */
export function openHistoryExport(folder: string): ExportHistory {
  return async ({ relation, firstPayment, rows }) => {
    const text = rows.map(toLines).join("");
    const hash = createHash("sha256").update(text).digest("hex").slice(0, 16);
    // The database may hold any text as an id.
    const id = /^pay_[0-9a-f]{32}$/.test(firstPayment) ? firstPayment : "pay_00000000";
    const file = join(resolve(folder), relation, monthOf(id), `${id}-${hash}.jsonl.gz`);
    await makeDurably(dirname(file), resolve(folder));
    await writeDurably(file, await compress(text));
  };
}

function toLines({ relation, lines }: RemovedRows): string {
  if (lines === null) return "";
  const rows = lines.split("\n").map((row) => `{"table":${JSON.stringify(relation)},"row":${row}}\n`);
  return rows.join("");
}

/** Returns the UTC month (YYYY-MM) of an id, which begins with its second (payments/ids.ts). */
function monthOf(id: string): string {
  return new Date(Number.parseInt(id.slice("pay_".length, "pay_".length + 8), 16) * 1_000).toISOString().slice(0, 7);
}

/**
 * Creates a folder inside `root`, and `root` itself, so that both exist after a crash. Folders that exist already may come from
 * a run that ended before they were on disk.
 */
async function makeDurably(path: string, root: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 });
  const top = first !== undefined && first.length <= root.length ? dirname(first) : root;
  for (let at = path; at !== top; at = dirname(at)) await syncFolder(dirname(at));
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Writes a whole file, so that it is either complete or absent after a crash. */
async function writeDurably(file: string, bytes: Buffer): Promise<void> {
  const part = `${file}.part`;
  const handle = await open(part, "w", 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(part, file);
  await syncFolder(dirname(file));
}
