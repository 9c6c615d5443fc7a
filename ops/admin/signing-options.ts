import { createPrivateKey, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import type { SigningKey } from "../../payments/merchants/sign-decisions.ts";
import { readNetworks } from "../../runtime/networks/read-networks.ts";
import { errorCode } from "../../runtime/redaction.ts";
import { type Context, RefusedError, UsageError } from "./command.ts";

/** Adds the options by which a command signs a statement. */
export const addSigningOptions = (command: Command): Command =>
  command
    .option("--sign <file>", "the file of your key: the signer then follows the decision, instead of waiting")
    .option("--as <name>", "your name in the signer's limits file; requires --sign");

/** Returns the key that a command's options name, or undefined. Requires NETWORKS_FILE for the deployment's name. */
export function readSigningKey(
  context: Pick<Context, "networksFile">,
  { sign: file, as: name }: Record<string, string | undefined>,
): SigningKey | undefined {
  if ((file === undefined) !== (name === undefined)) throw new UsageError("--sign and --as require each other");
  if (file === undefined || name === undefined) return undefined;
  return { name, key: readKeyFile(file), deployment: readNetworks(context.networksFile()).deployment };
}

function readKeyFile(file: string): KeyObject {
  try {
    const key = createPrivateKey(readFileSync(file));
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch (error) {
    throw new RefusedError(`${file} cannot be read as a key (${errorCode(error) ?? "its format is unknown"})`);
  }
  throw new RefusedError(`${file} has no Ed25519 key`);
}
