/**
 * Texts that differ from run to run, with what stands for them in a pattern. `bind`: a guide shows the same text again
 * wherever it means the same thing.
 */
const varying: readonly { shown: RegExp; pattern: string; bind?: true }[] = [
  { shown: /\b(pay|rfnd|evt|whe|mrch|key|opt|stl|app|crypto)_[0-9a-f]{32}/, pattern: "$1_[0-9a-f]{32}", bind: true },
  { shown: /0x[0-9a-fA-F]{64}\b/, pattern: "0x[0-9a-fA-F]{64}", bind: true },
  { shown: /0x[0-9a-fA-F]{40}\b/, pattern: "0x[0-9a-fA-F]{40}", bind: true },
  { shown: /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/, pattern: "[-0-9a-f]{36}", bind: true },
  { shown: /\b[1-9A-HJ-NP-Za-km-z]{80,88}\b/, pattern: "[1-9A-HJ-NP-Za-km-z]{80,88}", bind: true },
  { shown: /\b[1-9A-HJ-NP-Za-km-z]{32,44}\b/, pattern: "[1-9A-HJ-NP-Za-km-z]{32,44}", bind: true },
  { shown: /\bwhsec_[A-Za-z0-9+/=]+/, pattern: "whsec_[A-Za-z0-9+/=]+", bind: true },
  { shown: /\bsvc_(test_)?[A-Za-z0-9_]+/, pattern: "svc_$1[A-Za-z0-9_]+", bind: true },
  { shown: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/, pattern: "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z" },
  { shown: /\d{4}-\d\d-\d\d/, pattern: "\\d{4}-\\d\\d-\\d\\d" },
  { shown: /\b\d\d:\d\d:\d\d\b/, pattern: "\\d\\d:\\d\\d:\\d\\d" },
  { shown: /\b1[78]\d{8}\b/, pattern: "1[78]\\d{8}" },
  { shown: /\b\d+ ms\b/, pattern: "\\d+ ms" },
  { shown: /127\.0\.0\.1:\d+/, pattern: "127\\.0\\.0\\.1:\\d+" },
  { shown: /…/, pattern: ".*" },
];
const anyVarying = new RegExp(varying.map(({ shown }) => `(?:${shown.source})`).join("|"), "g");

/** What the texts of a guide that vary were in this run. */
export type Bindings = Map<string, string>;

/**
 * Returns the end of the expected lines in an output, or undefined if it does not contain them. `…` stands for any text, and on
 * a line of its own for any lines. Ids, hashes, times and ports may differ from those shown, but one that a guide shows twice
 * must be the same one: `bindings` remembers them.
 */
export function findOutput(output: string, expected: string, bindings: Bindings): number | undefined {
  const names: string[] = [];
  const pattern = expected
    .trimEnd()
    .split("\n")
    .map((line) =>
      line.trim() === "…" ? "(?:.*\\n)*?" : `[^\\S\\n]*${toPattern(line.trim(), bindings, names)}[^\\S\\n]*\\n`,
    )
    .join("");
  const found = new RegExp(`^${pattern}`, "m").exec(output.endsWith("\n") ? output : `${output}\n`);
  if (!found) return undefined;
  for (const [index, shown] of names.entries()) bindings.set(shown, found.groups?.[`bound${index}`] ?? "");
  return found.index + found[0].length;
}

function toPattern(line: string, bindings: Bindings, names: string[]): string {
  const parts: string[] = [];
  let from = 0;
  for (const { 0: shown, index } of line.matchAll(anyVarying)) {
    parts.push(RegExp.escape(line.slice(from, index)), patternOf(shown, bindings, names));
    from = index + shown.length;
  }
  return [...parts, RegExp.escape(line.slice(from))].join("");
}

function patternOf(shown: string, bindings: Bindings, names: string[]): string {
  const kind = varying.find((each) => new RegExp(`^(?:${each.shown.source})$`).test(shown));
  if (!kind) throw new Error(`nothing says how ${shown} varies`);
  const pattern = shown.replace(new RegExp(`^(?:${kind.shown.source})$`), kind.pattern);
  if (!kind.bind) return pattern;
  const bound = bindings.get(shown);
  if (bound !== undefined) return RegExp.escape(bound);
  const earlier = names.indexOf(shown);
  if (earlier >= 0) return `\\k<bound${earlier}>`;
  names.push(shown);
  return `(?<bound${names.length - 1}>${pattern})`;
}
