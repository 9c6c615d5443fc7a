import { countOf, type Finding, type Status, worstStatus } from "./finding.ts";

/** Width of the table in characters. */
const WIDTH = 120;
const STATUS_WIDTH = "warning".length;
/** Longer names of endpoints and checks are cut. */
const LONGEST_NAME = 26;
const GAP = "  ";

/** Returns all findings as one JSON document: the most severe status, and each finding. */
export function toJson(findings: readonly Finding[]): string {
  return JSON.stringify({ status: worstStatus(findings), findings }, null, 2);
}

/** Returns the findings as a table for people, chain by chain, and a last line that sums them up. */
export function toTable(findings: readonly Finding[]): string[] {
  const widthOf = (names: readonly string[]) => Math.min(LONGEST_NAME, Math.max(...names.map((name) => name.length)));
  const endpoints = widthOf(findings.map(({ endpoint = "" }) => endpoint));
  const checks = widthOf(findings.map(({ check }) => check));
  const lines: string[] = [];
  for (const [chain, rows] of Map.groupBy(findings, (finding) => finding.chain))
    lines.push(chain, ...rows.flatMap((row) => toLines(row, endpoints, checks)), "");
  return [...lines, summarize(findings)];
}

function toLines(finding: Finding, endpoints: number, checks: number): string[] {
  const { status, endpoint = "", check, detail } = finding;
  const cells = [status.padEnd(STATUS_WIDTH), toCell(endpoint, endpoints), toCell(check, checks)];
  const head = GAP + cells.join(GAP) + GAP;
  const width = WIDTH - head.length;
  const texts = [...wrap(detail, width), ...("remedy" in finding ? wrap(`-> ${finding.remedy}`, width) : [])];
  return texts.map((text, index) => (index === 0 ? head : " ".repeat(head.length)) + text);
}

/** Returns a text padded or cut to a width. */
function toCell(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width);
}

/** Breaks a text into lines of at most `width` characters, between words where it can. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > width) {
    const space = rest.lastIndexOf(" ", width);
    const end = space > 0 ? space : width;
    lines.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...lines, rest];
}

function summarize(findings: readonly Finding[]): string {
  const count = (status: Status) => findings.filter((one) => one.status === status).length;
  const [errors, warnings] = [count("error"), count("warning")];
  if (errors + warnings === 0) return `All ${findings.length} checks are ok.`;
  const found = `${countOf(errors, "error")} and ${countOf(warnings, "warning")} in ${findings.length} checks.`;
  return errors > 0 ? `${found} Do not go live.` : found;
}
