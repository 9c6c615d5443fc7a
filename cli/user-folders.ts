import { homedir } from "node:os";
import { join } from "node:path";
import type { Terminal } from "./terminal.ts";

type Env = Terminal["env"];

const homeOf = (env: Env) => env["HOME"] || homedir();

/** Returns the file of the profile that `pay login` stores (XDG base directories). */
export function profileFile(env: Env): string {
  return join(env["XDG_CONFIG_HOME"] || join(homeOf(env), ".config"), "payment-service", "pay.json");
}

/** Returns the file in which `npm start` registers its stack (local/stack-registration.ts). */
export function stackRegistrationFile(env: Env): string {
  return join(env["XDG_STATE_HOME"] || join(homeOf(env), ".local", "state"), "payment-service", "stack.json");
}
