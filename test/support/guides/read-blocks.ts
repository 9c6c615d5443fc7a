/** A code block of a guide, or a step that its reader takes by hand. */
export type Block = {
  /** The line of the guide on which its text begins. */
  line: number;
  text: string;
} & (
  | { kind: "file"; title: string }
  | { kind: "commands"; terminal: string; keepsRunning: boolean }
  | { kind: "output"; terminal: string }
  | { kind: "by hand" }
  | { kind: "skipped"; reason: string }
);

const shells = ["sh", "bash"];

/**
 * Returns the code blocks of a Markdown text in order. The words behind a block's language, which no page shows, say what a
 * reader does with it:
 *
 * - `title=shop.js`: saves it as this file.
 * - `sh`, optionally `terminal=NAME` and `keeps-running`: types it in this terminal, and leaves it running.
 * - `output`, optionally `terminal=NAME`: sees it in this terminal, by default in that of the commands above it.
 * - `not-run="REASON"`: tests skip it.
 *
 * `<!-- by hand: NAME -->` is a step without a code block. Throws for a block that says none of these.
 */
export function readBlocks(page: string): Block[] {
  const blocks: Block[] = [];
  const lines = page.split("\n");
  let terminal = "1";
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const step = /^<!-- by hand: (.+) -->$/.exec(line)?.[1];
    if (step !== undefined) blocks.push({ kind: "by hand", line: at + 1, text: step });
    const fence = /^( *)```(\S+)(.*)$/.exec(line);
    if (!fence) continue;
    const [, indent = "", language = "", info = ""] = fence;
    const end = lines.indexOf(`${indent}\`\`\``, at + 1);
    if (end < 0) throw new Error(`line ${at + 1}: the code block has no end`);
    const text = `${lines
      .slice(at + 1, end)
      .map((each) => each.slice(indent.length))
      .join("\n")}\n`;
    const place = { line: at + 2, text };
    at = end;
    const reason = /not-run="(.+)"/.exec(info)?.[1];
    const title = /title=(\S+)/.exec(info)?.[1];
    const named = /terminal=(\S+)/.exec(info)?.[1];
    if (reason !== undefined) blocks.push({ kind: "skipped", reason, ...place });
    else if (title !== undefined) blocks.push({ kind: "file", title, ...place });
    else if (/\boutput\b/.test(info)) blocks.push({ kind: "output", terminal: named ?? terminal, ...place });
    else if (shells.includes(language)) {
      terminal = named ?? "1";
      blocks.push({ kind: "commands", terminal, keepsRunning: /\bkeeps-running\b/.test(info), ...place });
    } else throw new Error(`line ${place.line}: nothing says what a reader does with this ${language} block`);
  }
  return blocks;
}
