import { readFileSync, statSync } from "node:fs";
import { accountForms } from "./caip-patterns.ts";
import type { Log } from "./log.ts";
import { errorCode } from "./redaction.ts";

/** How often the file is checked for changes, milliseconds. */
const CHECK_EVERY_MS = 2_000;

type State = { accounts: ReadonlySet<string> } | { error: string };

/**
 * Opens the list of accounts that are not served, and returns a function that returns which of some accounts it lists. A
 * line of the file is an address (listed on every chain) or a CAIP-10 account; # starts a comment. The file is read again
 * when it changes. The returned function throws while the file cannot be read or has an invalid line, because an incomplete
 * list must not let a listed account through.
 */
export function openScreeningList(
  file: string,
  deps: { log: Pick<Log, "error" | "info">; now: () => Date },
): (chain: string, accounts: readonly string[]) => ReadonlySet<string> {
  let checkedAt = Number.NEGATIVE_INFINITY;
  let version = "";
  let state: State = { error: "is not read yet" };

  const refresh = () => {
    const now = deps.now().getTime();
    // A clock that was set back must not keep an old list in use.
    if (now >= checkedAt && now - checkedAt < CHECK_EVERY_MS) return;
    checkedAt = now;
    try {
      const { mtimeMs, size } = statSync(file);
      if (`${mtimeMs} ${size}` === version) return;
      version = `${mtimeMs} ${size}`;
      state = parseScreeningList(readFileSync(file, "utf8"));
    } catch (error) {
      version = "";
      state = { error: `cannot be read (${errorCode(error) ?? "unknown"})` };
    }
    if ("error" in state)
      deps.log.error({ file, error: state.error }, "screening list is not usable, payments are held");
    else deps.log.info({ file, accounts: state.accounts.size }, "screening list was read");
  };
  return (chain, accounts) => {
    refresh();
    if ("error" in state) throw new Error(`the screening list ${state.error}`);
    const listed = state.accounts;
    return new Set(accounts.filter((account) => listed.has(account) || listed.has(`${chain}:${account}`)));
  };
}

/** Returns the accounts of a list, EVM addresses in lower case, or an error that names the invalid line. */
export function parseScreeningList(text: string): State {
  const accounts = new Set<string>();
  for (const [index, line] of text.split("\n").entries()) {
    const entry = line.replace(/#.*/, "").trim();
    if (entry === "") continue;
    const form = accountForms.find(({ pattern }) => pattern.test(entry));
    if (!form) return { error: `has no account in line ${index + 1}` };
    accounts.add(form.ignoresCase ? entry.toLowerCase() : entry);
  }
  return { accounts };
}
