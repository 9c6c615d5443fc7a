import { open } from "node:fs/promises";

/** Stores a line outside of the database. Throws when it is not certain that the line is stored. */
export type AuditSink = (line: string) => Promise<void>;

/** Time limit for an HTTP sink, milliseconds. */
const TIMEOUT_MS = 10_000;

/**
 * Returns the sink that a URL names: `file:` appends to a file; `http:` and `https:` send each line as the body of a POST,
 * which any status of 200 to 299 accepts. A user and password in the URL become the request's Basic authorization.
 */
export function openAuditSink(text: string): AuditSink {
  const url = new URL(text);
  return url.protocol === "file:" ? (line) => append(url, line) : (line) => post(url, line);
}

async function append(file: URL, line: string): Promise<void> {
  const handle = await open(file, "a", 0o600);
  try {
    await handle.appendFile(`${line}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function post(url: URL, line: string): Promise<void> {
  const { username, password } = url;
  const target = new URL(url);
  [target.username, target.password] = ["", ""];
  const pair = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64");
  const response = await fetch(target, {
    method: "POST",
    headers: { "content-type": "application/json", ...(username ? { authorization: `Basic ${pair}` } : {}) },
    body: line,
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`the audit sink answered ${response.status}`);
}
