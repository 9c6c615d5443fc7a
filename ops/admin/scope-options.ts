import { isScope, type Scope, scopeDescriptions } from "../../payments/merchants/scopes.ts";
import { UsageError } from "./command.ts";

const scopeHelp = Object.entries(scopeDescriptions)
  .map(([scope, description]) => `  ${scope.padEnd(20)} ${description}`)
  .join("\n");

/** The option that names the scopes of a new key. There is no default and no word for all. */
export const scopesOption = ["--scopes <list>", "what the key may do, separated by commas; see below"] as const;
/** The scopes as a part of a command's help. */
export const scopesHelp = `\nScopes:\n${scopeHelp}`;

/** Returns the scopes of a list. Throws a UsageError that names the first word that is no scope. */
export function parseScopes(list: string): Scope[] {
  const words = list.split(",");
  const unknown = words.find((word) => !isScope(word));
  if (unknown !== undefined) throw new UsageError(`--scopes: there is no scope ${JSON.stringify(unknown)}`);
  return words.filter(isScope);
}
