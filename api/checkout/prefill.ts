/** Longest value that is taken over, characters. */
const LONGEST = 200;

/**
 * What a wallet knows of its owner already: base64 of JSON, ids to values. Senders differ: some leave `+` unescaped in the
 * URL, so that it arrives as a blank, some write base64url, with or without padding, some encode Latin-1. What cannot be
 * read is nothing; unknown ids are left out.
 */
export function readPrefill<Id extends string>(
  text: string | undefined,
  known: readonly Id[],
): Partial<Record<Id, string>> {
  if (text === undefined || text.length > 8_192) return {};
  const bytes = Buffer.from(text.replaceAll(" ", "+").replaceAll("-", "+").replaceAll("_", "/"), "base64");
  try {
    const values: unknown = JSON.parse(decode(bytes));
    if (typeof values !== "object" || values === null) return {};
    return Object.fromEntries(
      known.flatMap((id) => {
        const value = (values as Record<string, unknown>)[id];
        return typeof value === "string" && value.length <= LONGEST ? [[id, value]] : [];
      }),
    ) as Partial<Record<Id, string>>;
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
