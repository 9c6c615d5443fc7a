import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { errorCode } from "../../runtime/redaction.ts";
import { type AddAction, RefusedError } from "./command.ts";

/** Adds the command that makes an operator's key. Its public part belongs into the signer's limits file. */
export function addOperatorKeyCommands(program: Command, addAction: AddAction): void {
  const keys = program
    .command("operator-keys")
    .description("files with the keys by which operators approve what the signer would refuse");
  addAction(
    keys.command("new <file>").description("write a new Ed25519 key, and print the public key for the limits file"),
    async (context, [file = ""]) => {
      const { privateKey } = generateKeyPairSync("ed25519");
      const text = privateKey.export({ type: "pkcs8", format: "pem" });
      // Only the owner can read the file. An existing file is never overwritten.
      await writeFile(file, text, { mode: 0o600, flag: "wx" }).catch((error: unknown) => {
        throw new RefusedError(`${file} cannot be written (${errorCode(error)})`);
      });
      const publicKey = publicKeyOf(privateKey);
      await context.record("operator_key.created", publicKey);
      return { value: { file, publicKey } };
    },
  );
}

function publicKeyOf(key: KeyObject): string {
  const { x = "" } = createPublicKey(key).export({ format: "jwk" });
  return Buffer.from(x, "base64url").toString("hex");
}
