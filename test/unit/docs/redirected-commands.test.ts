import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const pages = [
  ...["README.md", "CONTRIBUTING.md", "SECURITY.md"],
  ...["docs", "ops", "cli", "local"].flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".md"))
      .map((file) => `${folder}/${file}`),
  ),
];

/** Returns the commands of code blocks and of running text, each in one line. */
const listCode = (page: string): string[] => {
  const text = readFileSync(`${root}${page}`, "utf8").replaceAll(/\\\n\s*/g, "");
  const blocks = [...text.matchAll(/```(?:sh|bash)?[^\n]*\n([^`]+)```/g)].flatMap(([, block = ""]) =>
    block.split("\n"),
  );
  const inline = [...text.replaceAll(/```[^`]*```/g, "").matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
  return [...blocks, ...inline].map((code) => code.replaceAll(/\s+/g, " ").trim());
};

test("a file or a program that takes the output of a documented command gets no lines of npm", () => {
  const redirected = pages.flatMap((page) =>
    listCode(page)
      .filter((code) => /\bnpm run .+ (>|\|) \S/.test(code))
      .map((code) => `${page}: ${code}`),
  );
  expect(redirected.length).toBeGreaterThan(2);
  expect(redirected.filter((code) => !code.includes("npm run --silent "))).toEqual([]);
});
