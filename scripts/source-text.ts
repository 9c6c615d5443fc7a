/** A source file. The path is relative to the project, with forward slashes. */
export type Source = { path: string; text: string };

/** Returns the line of a position in a text, from 1. */
export const lineOf = (text: string, index: number): number => text.slice(0, index).split("\n").length;

/** Returns the imports of values. `import { type A } from` is one: Node removes the name and still loads the file. */
export function valueImports(text: string): { target: string; line: number }[] {
  const statement = /^[ \t]*(?:import|export)\b(?!\s+type\b)[^;"'`()]*?\bfrom\s*["']([^"']+)["']/gm;
  const bare = /^[ \t]*import\s*["']([^"']+)["']/gm;
  const dynamic = /\bimport\(\s*["'`]([^"'`]+)["'`]/g;
  return [statement, bare, dynamic].flatMap((pattern) =>
    [...text.matchAll(pattern)].map((match) => ({ target: match[1] ?? "", line: lineOf(text, match.index) })),
  );
}

/** Returns what a file imports at its head and hands on, types included. */
export function listImports(text: string): string[] {
  const statement = /^[ \t]*(?:import|export)\b[^;"'`()]*?\bfrom\s*["']([^"']+)["']/gm;
  return [...text.matchAll(statement)].map(([, target = ""]) => target);
}

/** Returns the text with comments blanked. Texts in quotes, which can contain `//`, stay as they are. */
export function blankComments(text: string): string {
  const commentOrQuoted = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g;
  return text.replace(commentOrQuoted, (part) => (part.startsWith("/") ? part.replace(/[^\n]/g, " ") : part));
}
