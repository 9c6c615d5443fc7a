import { z } from "zod";
import type { AuditHead } from "./audit-chain.ts";

// The lines that AUDIT_SINK receives, one head each. The service and the signer may use one sink, so each line names its log.

/** Whose audit log a head belongs to. */
type LogName = "service" | "signer";

const headLine = z.object({
  log: z.enum(["service", "signer"]),
  day: z.iso.date(),
  sequence: z.int(),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
});

/** Returns a head as one line of JSON. */
export function writeHeadLine(log: LogName, { day, sequence, hash }: AuditHead): string {
  return JSON.stringify({ log, day, sequence, hash });
}

/** Returns the heads of a log from the lines of a sink, or what is wrong with the first line that is no head. */
export function readHeadLines(text: string, of: LogName): AuditHead[] | { problem: string } {
  const heads: AuditHead[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line === "") continue;
    const parsed = headLine.safeParse(parseJson(line));
    if (!parsed.success) return { problem: `line ${index + 1} is not a head of an audit log` };
    const { log, ...head } = parsed.data;
    if (log === of) heads.push(head);
  }
  return heads;
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
