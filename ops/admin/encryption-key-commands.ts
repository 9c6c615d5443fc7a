import { writeFile } from "node:fs/promises";
import { type Command, InvalidArgumentError } from "commander";
import { isEncryptionKeyId, newEncryptionKeys } from "../../runtime/encryption.ts";
import { errorCode } from "../../runtime/redaction.ts";
import { type AddAction, RefusedError } from "./command.ts";

function keyId(text: string): string {
  if (!isEncryptionKeyId(text)) throw new InvalidArgumentError("expected up to 32 letters, digits, - or _");
  return text;
}

/** Adds the command that makes key pairs for buyer data and for webhook secrets. */
export function addEncryptionKeyCommands(program: Command, addAction: AddAction): void {
  const keys = program.command("encryption-keys").description("key pairs that encrypt buyer data or webhook secrets");
  addAction(
    keys
      .command("new <file>")
      .description("write a new private key to a file and its public key to <file>.pub")
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
}
