import { readdirSync, readFileSync } from "node:fs";

/** What a runbook tells an operator to run. Placeholders such as `<merchant>` and `…` are as in the text. */
export type Runbook = {
  name: string;
  text: string;
  queries: string[];
  /** The arguments of `npm run admin --`, of each command, without the file that takes its output. */
  adminCommands: string[];
  /** The arguments of `signer`, of each command that reads its store. */
  signerCommands: string[];
  /** The names of the metrics. */
  metrics: string[];
};

const folder = new URL("../../ops/runbooks/", import.meta.url);

/** Reads the runbooks, by name. */
export const readRunbooks = (): Runbook[] =>
  readdirSync(folder).map((file) => {
    const text = readFileSync(new URL(file, folder), "utf8");
    return {
      name: file.replace(/\.md$/, ""),
      text,
      queries: listQueries(text),
      adminCommands: listCommands(text, /^npm run (?:--silent )?admin -- (.+?)(?: > \S+)?$/),
      signerCommands: listCommands(text, /^signer (waiting|audit .+)$/),
      metrics: [...new Set(text.match(/\bpay_[a-z_]+/g) ?? [])],
    };
  });

/** Returns the statements in code blocks and in running text. */
function listQueries(text: string): string[] {
  const blocks = [...text.matchAll(/```sql\n([^`]+)```/g), ...text.matchAll(/`(select [^`]+)`/g)];
  return blocks.flatMap(([, block = ""]) =>
    block
      .split(";")
      .map((query) => query.trim())
      .filter(Boolean),
  );
}

/** Returns the arguments of the commands in code blocks, and of those in running text, which may go on in the next line. */
function listCommands(text: string, command: RegExp): string[] {
  const blocks = [...text.matchAll(/```(?:bash)?\n([^`]+)```/g)].flatMap(([, block = ""]) => block.split("\n"));
  const inline = [...text.replaceAll(/```[^`]*```/g, "").matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
  return [...blocks, ...inline]
    .map((code) => code.replaceAll(/\s+/g, " ").trim())
    .flatMap((code) => command.exec(code)?.[1] ?? []);
}
