import { expect, test } from "vitest";
import { cleanLine, toCleanJson } from "../../../cli/clean-line.ts";
import { cleanText } from "../../../runtime/clean-text.ts";

const units = Array.from({ length: 0x1_0000 }, (_, unit) => `<${String.fromCharCode(unit)}>`);

test("a line is cleaned of the same characters as the service's own logs", () => {
  for (const text of units) expect(cleanLine(text)).toBe(cleanText(text, 3));
});

test("JSON keeps every value and shows no character that a line is cleaned of, except its own line feeds", () => {
  const json = toCleanJson({ "\u009b2J": units }, 2);
  expect(JSON.parse(json)).toEqual({ "\u009b2J": units });
  expect(json.split("\n").map(cleanLine).join("\n")).toBe(json);
});
