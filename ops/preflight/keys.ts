import { ConfigError, readPreflightConfig } from "../../runtime/config.ts";
import { failure, type Outcome, ok, warning } from "./finding.ts";
import type { Check } from "./run-checks.ts";

/** A key of the networks file. `signs` opens it, signs with it and returns whether the signature is the address's. */
export type KeyToCheck = { role: string; address: string; signs: () => Promise<boolean> };

/** Whose machine needs a key: the signer's needs that of a treasury, the workers' that of a lane. */
type Owner = "signer" | "workers";

const TREASURY = "treasury";

/** What the keys sign: no transaction, no typed data, and nothing that is sent anywhere. */
export const SIGNED_TEXT = "preflight: this key signs";

/** What to do about a missing key where the environment does not say whose machine this is. */
const remedies: Record<Owner, string> = {
  signer: "Run preflight on the machine of the signer; on the machine of the workers, set SIGNER, as they have it.",
  workers:
    "Run preflight on the machine of the workers; on the machine of the signer, set SIGNER_LISTEN, as it has it.",
};

/** Checks that this process reaches a key that its machine needs, and can sign with it, and no key that it does not need. */
export function keyCheck(env: NodeJS.ProcessEnv, { role, address, signs }: KeyToCheck): Check {
  const name = `key of ${role}`;
  const owner = role === TREASURY ? "signer" : "workers";
  return {
    name,
    async run() {
      const isNeeded = findNeed(env, owner);
      if (isNeeded === false) return [await checkAbsence(name, owner, signs)];
      try {
        if (await signs()) return [ok(name, `signs for ${address}`)];
        return [failure(name, `signs for another address than ${address}`, "Configure the key of this address.")];
      } catch (error) {
        if (isNeeded || !(error instanceof ConfigError)) throw error;
        return [failure(name, error.message, remedies[owner])];
      }
    },
  };
}

/** Returns whether this machine needs the keys of an owner, or undefined when its environment does not say. */
function findNeed(env: NodeJS.ProcessEnv, owner: Owner): boolean | undefined {
  const { SIGNER, SIGNER_LISTEN } = readPreflightConfig(env);
  if (SIGNER === "embedded") return true;
  if (SIGNER === undefined && SIGNER_LISTEN === undefined) return undefined;
  return (owner === "signer" ? SIGNER_LISTEN : SIGNER) !== undefined;
}

async function checkAbsence(name: string, owner: Owner, signs: KeyToCheck["signs"]): Promise<Outcome> {
  // A key that cannot be opened is not here, for whatever reason.
  if (!(await signs().catch(() => false)))
    return ok(name, `not on this machine: run preflight on the machine of the ${owner} too`);
  const remedy = `Remove it from here: only the machine of the ${owner} needs it.`;
  return warning(name, "can be used on this machine, which does not need it", remedy);
}

/** Returns the names of a network's keys, in the order of `[treasury, ...lanes]`. */
export function keyRoles({ lanes }: { lanes: readonly unknown[] }): string[] {
  return [TREASURY, ...lanes.map((_lane, index) => `lane ${index}`)];
}
