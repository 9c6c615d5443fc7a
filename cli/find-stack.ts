import { dirname, join } from "node:path";
import { readOwnJson } from "./read-own-json.ts";
import type { Terminal } from "./terminal.ts";
import { stackRegistrationFile } from "./user-folders.ts";

type Caller = { apiKey: string; merchantId: string };

/** What `pay` reads of the file of a local stack (local/stack-file.ts). */
export type LocalStack = {
  /** The path of the file. */
  file: string;
  baseUrl: string;
  test: Caller;
  live: Caller;
  evm: { chain: string; buyers: { address: string; privateKey: string }[] };
  solana: { chain: string; buyers: { address: string; secretKey: string }[] };
};

type StackContent = Omit<LocalStack, "file"> & { processes: { supervisor: number } };

/**
 * Returns the stack that `npm start` runs: that of `.local` in the current folder or a parent of it, else the one that is
 * registered for this user. Ignored are a stack that has ended, and a file that others than this user can read or write.
 */
export async function findLocalStack({ env, cwd }: Pick<Terminal, "env" | "cwd">): Promise<LocalStack | undefined> {
  for (const folder of foldersAbove(cwd)) {
    const stack = await readStack(join(folder, ".local", "stack.json"));
    if (stack) return stack;
  }
  const registered = await readOwnJson(stackRegistrationFile(env));
  const file = member(registered, "stackFile");
  return typeof file === "string" ? readStack(file) : undefined;
}

/** Returns a folder and the ones that contain it. */
function foldersAbove(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...foldersAbove(parent)];
}

async function readStack(file: string): Promise<LocalStack | undefined> {
  const content = await readOwnJson(file);
  return isStack(content) && isAlive(content.processes.supervisor) ? { ...content, file } : undefined;
}

/** Returns true for the content of a stack's file. Keys and ids in it are checked where they are used. */
function isStack(content: unknown): content is StackContent {
  const isCaller = (one: unknown) => isText(member(one, "apiKey")) && isText(member(one, "merchantId"));
  const isChain = (one: unknown, secret: string) => {
    const buyers = member(one, "buyers");
    const isBuyer = (buyer: unknown) => isText(member(buyer, "address")) && isText(member(buyer, secret));
    return isText(member(one, "chain")) && Array.isArray(buyers) && buyers.every(isBuyer);
  };
  const { baseUrl, test, live, evm, solana, processes } = Object(content) as Partial<
    Record<keyof StackContent, unknown>
  >;
  return (
    isText(baseUrl) &&
    [test, live].every(isCaller) &&
    isChain(evm, "privateKey") &&
    isChain(solana, "secretKey") &&
    Number.isSafeInteger(member(processes, "supervisor"))
  );
}

const isText = (value: unknown) => typeof value === "string";

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** Returns true while a process of this user runs. Other numbers than those of processes name groups, or the first one. */
function isAlive(pid: number): boolean {
  if (pid <= 1) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
