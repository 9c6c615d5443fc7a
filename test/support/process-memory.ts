import { open, readFile } from "node:fs/promises";

/** Bytes that are read at a time. */
const CHUNK = 8 * 1024 * 1024;

/** True where the memory of a child process can be read. */
export const canReadMemory = process.platform === "linux";

/** Returns the names of those byte strings that occur in the writable memory or in the environment of a process. Linux only. */
export async function findInProcess(pid: number, wanted: Readonly<Record<string, Buffer>>): Promise<string[]> {
  const environment = await readFile(`/proc/${pid}/environ`);
  const found = new Set(Object.keys(wanted).filter((name) => environment.includes(wanted[name] ?? "")));
  const overlap = Math.max(...Object.values(wanted).map(({ length }) => length));
  const memory = await open(`/proc/${pid}/mem`);
  try {
    const buffer = Buffer.alloc(CHUNK + overlap);
    for (const { from, to } of await listWritable(pid))
      for (let at = from; at < to; at += CHUNK) {
        // The process may have released the region since it was listed.
        const read = await memory.read(buffer, 0, Math.min(buffer.length, to - at), at).catch(() => undefined);
        const part = buffer.subarray(0, read?.bytesRead ?? 0);
        for (const [name, bytes] of Object.entries(wanted)) if (part.includes(bytes)) found.add(name);
      }
  } finally {
    await memory.close();
  }
  return [...found].sort();
}

async function listWritable(pid: number): Promise<{ from: number; to: number }[]> {
  const maps = await readFile(`/proc/${pid}/maps`, "utf8");
  return [...maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm)].map(([, from = "", to = ""]) => ({
    from: Number.parseInt(from, 16),
    to: Number.parseInt(to, 16),
  }));
}
