import { type CollectedId, isCollectedId } from "../../../payments/buyer-data/collected-schema.ts";

/** Longest value that is read, characters. */
const MAX_LENGTH = 200;

/**
 * Returns the data that a wallet already has of its owner: base64 of a JSON object, ids to values. Senders differ: some
 * leave `+` unescaped in the URL, so that it arrives as a space; some use base64url, with or without padding; some encode
 * Latin-1. Ignores unreadable input and unknown ids.
 */
export function readPrefill(text: string | undefined): Partial<Record<CollectedId, string>> {
  if (text === undefined || text.length > 8_192) return {};
  const bytes = Buffer.from(text.replaceAll(" ", "+").replaceAll("-", "+").replaceAll("_", "/"), "base64");
  try {
    const values: unknown = JSON.parse(decode(bytes));
    if (typeof values !== "object" || values === null) return {};
    const prefill: Partial<Record<CollectedId, string>> = {};
    for (const [id, value] of Object.entries(values))
      if (isCollectedId(id) && typeof value === "string" && value.length <= MAX_LENGTH) prefill[id] = value;
    return prefill;
  } catch {
    return {};
  }
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return bytes.toString("latin1");
  }
}
