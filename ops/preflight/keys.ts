import { failure, ok } from "./finding.ts";
import type { Check } from "./run-checks.ts";

/** A key of the networks file. `signs` opens it, signs with it and returns whether the signature is the address's. */
export type KeyToCheck = { role: string; address: string; signs: () => Promise<boolean> };

/** What the keys sign: no transaction, no typed data, and nothing that is sent anywhere. */
export const SIGNED_TEXT = "preflight: this key signs";

/** Checks that this process reaches a key and can sign with it. */
export function keyCheck({ role, address, signs }: KeyToCheck): Check {
  const name = `key of ${role}`;
  return {
    name,
    async run() {
      if (await signs()) return [ok(name, `signs for ${address}`)];
      return [failure(name, `signs for another address than ${address}`, "Configure the key of this address.")];
    },
  };
}

/** Returns the names of a network's keys, in the order of `[treasury, ...lanes]`. */
export function keyRoles({ lanes }: { lanes: readonly unknown[] }): string[] {
  return ["treasury", ...lanes.map((_lane, index) => `lane ${index}`)];
}
