import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { freePort } from "../../../local/free-ports.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { addCleanup } from "../cleanups.ts";
import { waitFor } from "../wait-for.ts";
import { type Bindings, findOutput } from "./match-output.ts";
import { type Block, readBlocks } from "./read-blocks.ts";
import { openTerminal, type Terminal } from "./terminal.ts";

export type GuideOptions = {
  /** The folder that stands for this repository. */
  repository: string;
  /** Additional variables of the reader's environment. */
  env?: Record<string, string>;
  /** What the reader does by hand, by the name of the step. `shown` is what all terminals show. */
  byHand?: Record<string, (shown: string) => Promise<void>>;
  /** Follows this section of the page only, from within the repository. */
  section?: string;
};

const PATIENCE = { within: 60_000 };
/** The port of the reader's own server in all guides. */
const SHOP_PORT = "3000";
/** Nothing is fetched from the registry. */
const npmEnv = { npm_config_offline: "true", npm_config_audit: "false", npm_config_fund: "false" };
/** Commands that install packages of the registry. Tests link those that this repository has. */
const installs = /^npm install (?=[@a-z])/gm;

/**
 * Follows a page as its reader does: saves its files, types its commands and compares what appears. Begins in an empty folder
 * that contains the repository as `payment-service`. Throws with the line of the page when something differs.
 */
export async function runGuide(
  path: string,
  { repository, env = {}, byHand = {}, section }: GuideOptions,
): Promise<void> {
  const written = keepSection(await readFile(path, "utf8"), section);
  const page = written.replaceAll(SHOP_PORT, String(await freePort())).replaceAll(installs, "link-packages ");
  const { folder, scratch } = await makeFolders(repository);
  const bindings: Bindings = new Map();
  const terminals = new Map<string, OpenTerminal>();
  const openNamed = (name: string): OpenTerminal => {
    const PATH = `${scratch}:${process.env["PATH"]}`;
    const all = { ...process.env, ...npmEnv, ...env, PATH };
    const opened = terminals.get(name) ?? {
      terminal: openTerminal({ cwd: section ? repository : folder, env: all, scratch }),
      seen: 0,
    };
    terminals.set(name, opened);
    return opened;
  };
  const show = () => [...terminals].map(([name, { terminal }]) => `[${name}]\n${terminal.output()}`).join("\n");
  const follow = async (block: Block): Promise<void> => {
    if (block.kind === "commands") return await runCommands(openNamed(block.terminal), block);
    if (block.kind === "output") return await expectOutput(openNamed(block.terminal), block.text, bindings);
    if (block.kind === "file") return await saveFile(join(folder, block.title), block.text);
    if (block.kind === "skipped") return;
    const step = byHand[block.text];
    if (!step) throw new Error("the test does not take this step");
    await step(show());
  };
  try {
    for (const block of readBlocks(page)) {
      await follow(block).catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        throw new Error(`${path}:${block.line}: ${reason}\n\n${block.text}\nThe terminals show:\n${show()}`);
      });
    }
  } finally {
    await Promise.all([...terminals.values()].map(({ terminal }) => terminal.close()));
  }
}

/** Blanks the other sections of a page, so that lines keep their numbers. */
function keepSection(page: string, section: string | undefined): string {
  if (section === undefined) return page;
  let isInside = false;
  const lines = page.split("\n").map((line) => {
    if (line.startsWith("## ")) isInside = line === `## ${section}`;
    return isInside ? line : "";
  });
  return lines.join("\n");
}

/** `seen`: how many characters of the output a block has been compared with. */
type OpenTerminal = { terminal: Terminal; seen: number };

async function runCommands(opened: OpenTerminal, block: Block & { kind: "commands" }): Promise<void> {
  const { terminal } = opened;
  if (terminal.state() === "running") throw new Error("the command before keeps this terminal");
  opened.seen = terminal.output().length;
  await terminal.type(block.text);
  if (block.keepsRunning) return;
  const hasEnded = () => terminal.state() !== "running" && terminal.state();
  const state = await waitFor(hasEnded, { ...PATIENCE, what: "the commands end" });
  if (state === "failed") throw new Error("a command failed");
}

async function expectOutput(opened: OpenTerminal, expected: string, bindings: Bindings): Promise<void> {
  const { terminal } = opened;
  const find = () => {
    const end = findOutput(terminal.output().slice(opened.seen), expected, bindings);
    return end ?? (terminal.state() === "running" ? undefined : "differs");
  };
  const end = await waitFor(find, { ...PATIENCE, what: "the output appears" });
  if (end === "differs") throw new Error("the output differs");
  opened.seen += end;
}

async function saveFile(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

/** Runs a command of an installed package. npm's own program takes as long to start as most of these commands take. */
const npx = `#!/bin/sh
exec "node_modules/.bin/$@"
`;

const linkPackages = `#!/bin/sh -e
for name in "$@"; do
  mkdir -p "node_modules/$(dirname "$name")"
  ln -s "${resolve("node_modules")}/$name" "node_modules/$name"
done
`;

/** Makes the reader's folder, and one for the harness, whose programs are in the PATH. */
async function makeFolders(repository: string): Promise<{ folder: string; scratch: string }> {
  const top = await makeScratch("guide");
  addCleanup(() => rm(top, { recursive: true, force: true }));
  const [folder, scratch] = [join(top, "reader"), join(top, "scratch")];
  await Promise.all([mkdir(folder), mkdir(scratch)]);
  await symlink(repository, join(folder, "payment-service"));
  const programs = { npx, "link-packages": linkPackages };
  for (const [name, text] of Object.entries(programs)) await writeFile(join(scratch, name), text, { mode: 0o755 });
  return { folder, scratch };
}
