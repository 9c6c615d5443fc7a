import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Words that names no longer use, with the words to use instead (docs/glossary.md). */
const replacedInNames: Readonly<Record<string, string>> = {
  again: "retry",
  bell: "enqueue",
  births: "insert events",
  carried: "assigned",
  company: "forming batch",
  doorbell: "enqueue",
  dossier: "report",
  fault: "error",
  gather: "accumulate",
  house: "module",
  judge: "verify",
  lend: "attach",
  look: "read, check, poll",
  nobody: "the actor",
  outlive: "expire",
  outward: "safe fetch, outgoing",
  owe: "accrue",
  ring: "enqueue",
  room: "module",
  rung: "enqueued",
  sealer: "encryption",
  sighting: "observation",
  somebody: "the actor",
  stock: "inventory",
  stray: "unmatched",
  tell: "report, notify, log",
  till: "merchant fixture",
  told: "reported, returned",
  trouble: "error",
  turn: "pass",
  uncarry: "unassign",
  verdict: "result",
  whoever: "the actor",
};

/** Words of prose that name no actor, or that are unknown outside this project. */
const replacedInProse = ["doorbell", "how-manieth", "rung", "sighting", "uncarry", "verdict", "whoever"];

/** Names that may contain a replaced word, each with the reason. */
const allowedNames: readonly { name: RegExp; path: RegExp; reason: string }[] = [
  { name: /fault/i, path: /^test\//, reason: "fault injection is the field's term" },
  { name: /^(fault|faults)$/, path: /^(package\.json|scripts\/)/, reason: "npm run faults" },
  { name: /^EAI_AGAIN$/, path: /./, reason: "an error code of getaddrinfo" },
  { name: /^keyRings$/, path: /./, reason: "a resource of Google's KMS" },
  { name: /^nobody$/, path: /^local\/scratch-folder\.ts$/, reason: "a user of /etc/passwd" },
];

/** Files that list the replaced words. */
const skipped =
  /^(docs\/glossary\.md|CHANGELOG\.md|scripts\/check-vocabulary\.ts|test\/unit\/scripts\/check-vocabulary\.)/;

type Finding = { path: string; line: number; word: string; name: string };

/** Returns the code of a TypeScript text with comments, strings and patterns blanked, except for SQL and strings without spaces. */
export function keepNames(text: string): string {
  const quoted =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|(?<=[(=:,!&|]\s*)\/(?:\\.|[^/\\\n])+\/[a-z]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g;
  const blank = (part: string) => part.replace(/[^\n]/g, " ");
  return text.replace(quoted, (part) => {
    if (part.startsWith("/")) return blank(part);
    const isSql = part.startsWith("`") && /\b(select|insert into|update|delete from)\s/.test(part);
    if (isSql || !/\s/.test(part)) return part;
    // The text of a template is prose, what it interpolates is code.
    return part.replace(/\$\{[^{}]*\}|[^$]+|\$/g, (piece) => (piece.startsWith("${") ? piece : blank(piece)));
  });
}

/** Returns the words of a name in the singular: `verifyIn_Turns` has verify, in and turn. */
export function wordsOf(name: string): string[] {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z])([A-Z][a-z])/g, "$1 $2");
  return words
    .toLowerCase()
    .split(/[^\p{L}]+/u)
    .map((word) => (Object.hasOwn(replacedInNames, word) ? word : word.replace(/s$/, "")));
}

/** Returns the part of a file that consists of names; undefined for a file whose names are not checked. */
function namesOf(path: string, text: string): string | undefined {
  if (path.endsWith(".ts")) return keepNames(text);
  if (path.endsWith("schema.sql")) return text.replace(/--[^\n]*/g, "");
  // Metrics, alerts, records and labels. Descriptions of alerts are prose.
  if (/^ops\/prometheus\/.*\.yml$|^ops\/grafana\/dashboards\/.*\.json$/.test(path))
    return text.replace(/[^\n]*/g, (line) => (/\bpay_|(alert|record|alertname): *\S+/.test(line) ? line : ""));
  return undefined;
}

/** Finds replaced words in the names and the prose of one file. */
export function findReplacedWords({ path, text }: { path: string; text: string }): Finding[] {
  if (skipped.test(path)) return [];
  const lineOf = (whole: string, index: number) => whole.slice(0, index).split("\n").length;
  const names = namesOf(path, text) ?? "";
  const inNames = [...names.matchAll(/[\p{L}_$][\p{L}\w$]*/gu)].flatMap(({ 0: name, index }) =>
    allowedNames.some((allowed) => allowed.name.test(name) && allowed.path.test(path))
      ? []
      : wordsOf(name)
          .filter((word) => Object.hasOwn(replacedInNames, word))
          .map((word) => ({ path, line: lineOf(names, index), word, name })),
  );
  const prose = new RegExp(`(?<!\\p{L})(?:${replacedInProse.join("|")})s?(?!\\p{L})`, "giu");
  const inProse = /\.(ts|md|sql|yml)$/.test(path) ? [...text.matchAll(prose)] : [];
  return [
    ...inNames,
    ...inProse.map(({ 0: word, index }) => ({ path, line: lineOf(text, index), word: word.toLowerCase(), name: word })),
  ];
}

if (import.meta.main) {
  const files = execFileSync("git", ["ls-files"], { encoding: "utf8" }).split("\n");
  const checked = files.filter((path) => /\.(ts|md|sql|yml|json)$/.test(path));
  const findings = checked.flatMap((path) => findReplacedWords({ path, text: readFileSync(path, "utf8") }));
  for (const { path, line, word, name } of findings)
    console.error(`${path}:${line}: ${name}: use ${replacedInNames[word] ?? "a word of docs/glossary.md"}`);
  if (findings.length > 0) process.exitCode = 1;
  else console.log(`vocabulary: ${checked.length} files use the words of the glossary`);
}
