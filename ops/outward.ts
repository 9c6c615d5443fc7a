import type { IncomingMessage } from "node:http";

/** A request to a server that a caller has named. */
export type OutwardRequest = {
  method: "GET" | "POST";
  url: string;
  headers?: Record<string, string>;
  body?: string;
  /** From now to the last byte, milliseconds. */
  timeoutMs: number;
  /** Longest body that is read, bytes; the connection is cut at the first byte more. */
  maxBytes: number;
  /** Redirects followed, each checked like the first address. */
  redirects: number;
};

/** What came back, or why nothing did. `body` is complete. */
export type OutwardAnswer =
  | { ok: true; status: number; headers: IncomingMessage["headers"]; body: Buffer }
  | { ok: false; reason: string };

/** Asks a server that a caller has named, and no other: never one of a private network. Never throws. */
export type Outward = (request: OutwardRequest) => Promise<OutwardAnswer>;

/** @param allowPrivate for development and tests: any address, and plain HTTP */
export function createOutward(_options: { allowPrivate: boolean }): Outward {
  return async () => ({ ok: false, reason: "not built yet" });
}
