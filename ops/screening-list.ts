import { readFileSync, statSync } from "node:fs";
import { evmAccountPattern, solanaAccountPattern } from "./caip-patterns.ts";
import type { Log } from "./log.ts";

/** How often the file is looked at, milliseconds. */
const LOOK_EVERY_MS = 2_000;

type State = { names: ReadonlySet<string> } | { fault: string };

/**
 * Opens the list of accounts that are not served: one a line, an address (on every chain) or a CAIP-10 account, with #
 * before a remark. It is read again when the file changes. What it gives throws while the file cannot be read or a line
 * is no account: a list that is half there must not let anybody pass.
 */
export function openScreeningList(
  file: string,
  deps: { log: Pick<Log, "error" | "info">; now: () => Date },
): (chain: string, accounts: readonly string[]) => ReadonlySet<string> {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let version = "";
  let state: State = { fault: "not read yet" };

  const look = () => {
    const now = deps.now().getTime();
    // A clock that was set back must not keep an old list in use.
    if (now >= lookedAt && now - lookedAt < LOOK_EVERY_MS) return;
    lookedAt = now;
    try {
      const { mtimeMs, size } = statSync(file);
      if (`${mtimeMs} ${size}` === version) return;
      version = `${mtimeMs} ${size}`;
      state = parseScreeningList(readFileSync(file, "utf8"));
    } catch (error) {
      version = "";
      state = { fault: `cannot be read (${(error as { code?: string }).code ?? "unknown"})` };
    }
    if ("fault" in state)
      deps.log.error({ file, fault: state.fault }, "the screening list is not usable: payments are held");
    else deps.log.info({ file, accounts: state.names.size }, "the screening list was read");
  };
  return (chain, accounts) => {
    look();
    if ("fault" in state) throw new Error(`the screening list ${state.fault}`);
    const { names } = state;
    return new Set(accounts.filter((account) => names.has(account) || names.has(`${chain}:${account}`)));
  };
}

/** The accounts of a list's text, those of EVM in lower case; or what is wrong with it, naming the line. */
export function parseScreeningList(text: string): State {
  const names = new Set<string>();
  for (const [index, line] of text.split("\n").entries()) {
    const entry = line.replace(/#.*/, "").trim();
    if (entry === "") continue;
    // EVM addresses ignore case; base58 does not.
    if (evmAccountPattern.test(entry)) names.add(entry.toLowerCase());
    else if (solanaAccountPattern.test(entry)) names.add(entry);
    else return { fault: `holds no account in line ${index + 1}` };
  }
  return { names };
}
