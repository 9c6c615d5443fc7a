import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, extname, join, normalize } from "node:path";
import { expect, test } from "vitest";

/** Folders that hold no pages of this project. */
const skipped = new Set(["node_modules", ".local", ".git", "dist"]);

function listPages(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : listPages(path);
    return extname(path) === ".md" ? [path] : [];
  });
}

/** Returns the text of a page without code, in which brackets are no links. */
const readProse = (path: string): string =>
  readFileSync(path, "utf8")
    .replace(/^( *)```[\s\S]*?^\1```$/gm, "")
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\](){}]/g, ""));

/** Returns the anchors of a page's headings, as GitHub derives them. */
const anchorsOf = (path: string): Set<string> =>
  new Set(
    [...readProse(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
      heading
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );

function findBrokenLinks(path: string): string[] {
  const links = [...readProse(path).matchAll(/\]\(\s*([^)\s]+)\s*\)/g)].map(([, link = ""]) => link);
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [file = "", anchor] = link.split("#");
    const target = file === "" ? path : normalize(join(dirname(path), file));
    if (!existsSync(target)) return true;
    return anchor !== undefined && statSync(target).isFile() && !anchorsOf(target).has(anchor);
  });
}

test("every link between pages leads to a file and a heading that exist", () => {
  const broken = listPages(".").flatMap((path) => findBrokenLinks(path).map((link) => `${path}: ${link}`));
  expect(broken).toEqual([]);
});
