/** Browsers send less than a tenth of this. A header may have 16 kB, which takes milliseconds to read. */
const MOST_CHARACTERS = 1_000;

/**
 * Returns the encoding that a header Accept-Encoding prefers (RFC 9110, section 12.5.3), and the first offered one of equal
 * weights. Returns undefined for a response without encoding, also when the header refuses that too.
 * @param offered the encodings that the response can have, the best one first
 */
export function pickEncoding<E extends string>(accepted: string, offered: readonly E[]): E | undefined {
  const weights = new Map(accepted.slice(0, MOST_CHARACTERS).toLowerCase().split(",").map(readWeight));
  const weightOf = (encoding: E) => weights.get(encoding) ?? weights.get("*") ?? 0;
  const least = weights.get("identity") ?? 0;
  return offered
    .filter((encoding) => weightOf(encoding) > 0 && weightOf(encoding) >= least)
    .toSorted((one, other) => weightOf(other) - weightOf(one))[0];
}

/** Returns the encoding that a member of the header names, and its weight. */
function readWeight(member: string): [string, number] {
  const [encoding = "", ...parameters] = member.split(";").map((part) => part.trim());
  const weight = parameters.find((part) => part.startsWith("q="));
  return [encoding, weight === undefined ? 1 : Number(weight.slice(2))];
}
