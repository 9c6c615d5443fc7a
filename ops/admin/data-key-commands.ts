import { writeFile } from "node:fs/promises";
import { type Command, InvalidArgumentError } from "commander";
import { listDataKeyUses, reencrypt } from "../../payments/maintenance/reencrypt.ts";
import { isEncryptionKeyId, newEncryptionKeys } from "../../runtime/encryption.ts";
import { errorCode } from "../../runtime/redaction.ts";
import { type AddAction, oneOf, RefusedError, unwrap } from "./command.ts";

const parsePair = oneOf("buyer-data", "webhooks", "totp");

function keyId(text: string): string {
  if (!isEncryptionKeyId(text)) throw new InvalidArgumentError("expected up to 32 letters, digits, - or _");
  return text;
}

/** Adds the commands for the key pairs that encrypt buyer data, webhook secrets and TOTP secrets. */
export function addDataKeyCommands(program: Command, addAction: AddAction): void {
  const keys = program
    .command("data-keys")
    .description("key pairs that encrypt buyer data, webhook secrets and TOTP secrets");
  addAction(
    keys
      .command("new <file>")
      .description("write a new private key to a file and its public key to <file>.pub; needs no database")
      .requiredOption("--name <name>", "the name by which rows refer to the pair, such as 2026-11", keyId),
    // It writes no audit entry: the first keys are made before there is a database.
    async (_context, [file = ""], { name = "" }) => {
      const { publicKey, privateKey } = await newEncryptionKeys(name);
      // Only the owner can read the file. An existing file is never overwritten.
      const save = (path: string, text: string) =>
        writeFile(path, `${text}\n`, { mode: 0o600, flag: "wx" }).catch((error: unknown) => {
          throw new RefusedError(`${path} cannot be written (${errorCode(error)})`);
        });
      await save(file, privateKey);
      await save(`${file}.pub`, publicKey);
      return { value: { privateKeyFile: file, publicKeyFile: `${file}.pub`, publicKey } };
    },
  );
  addAction(
    keys
      .command("status")
      .description("list the key pairs in use, and how much each has encrypted")
      .addHelpText(
        "after",
        "\nThe private key of a pair that is not listed is no longer needed by this database once every writer has the new\npublic key; backups still need it.",
      ),
    async (context) => ({ value: await listDataKeyUses(context) }),
  );
  addAction(
    keys
      .command("reencrypt")
      .argument("<pair>", "buyer-data, webhooks or totp", parsePair)
      .description("encrypt everything of a pair anew, to the pair's public key; safe at any time")
      .addHelpText(
        "after",
        "\nReads the public key to encrypt to and the private keys of the pair and of the earlier ones from the\nenvironment:\nBUYER_DATA_PUBLIC_KEY and BUYER_DATA_PRIVATE_KEYS, WEBHOOK_… or TOTP_…",
      ),
    async (context, [text]) => {
      const pair = parsePair(text);
      const [{ keyId, encrypt }, decrypt] = [context.encryptTo(pair), context.decryptWith(pair)];
      const actor = await context.actor();
      const value = unwrap(await reencrypt(context, { actor, pair, keyId, encrypt, decrypt }));
      const missing = Object.entries(value.unreadable).map(([key, count]) => `${count} of ${key}`);
      if (missing.length === 0) return { value };
      return { value, refusal: `the private key is missing or does not fit: ${missing.join(", ")}` };
    },
  );
}
