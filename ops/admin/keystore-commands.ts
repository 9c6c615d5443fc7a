import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import type { Hex } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { encryptKeystore } from "../../chains/evm/signers/keystore-file.ts";
import { readKey, readSecret } from "../../runtime/networks/read-networks.ts";
import { errorCode } from "../../runtime/redaction.ts";
import { type AddAction, RefusedError } from "./command.ts";

/** Adds the commands for encrypted key files, which the networks file names as `keystore`. */
export function addKeystoreCommands(program: Command, addAction: AddAction): void {
  const keystores = program
    .command("keystores")
    .description("encrypted files with the private keys of lanes and treasuries");
  addAction(
    keystores
      .command("new <file>")
      .description("write an encrypted private key: a new one, or the one that --key names")
      .requiredOption("--password <variable>", "the environment variable with the password")
      .option("--key <variable>", "the environment variable with the private key"),
    async (context, [file = ""], { password = "", key: variable }) => {
      const secret = readSecret({ env: password }, context.env);
      const key: Hex = variable === undefined ? generatePrivateKey() : readKey({ env: variable }, context.env);
      // Only the owner can read the file. An existing file is never overwritten.
      await writeFile(file, await encryptKeystore(key, secret), { mode: 0o600, flag: "wx" }).catch((error: unknown) => {
        throw new RefusedError(`${file} cannot be written (${errorCode(error)})`);
      });
      const address = privateKeyToAddress(key);
      await context.record("keystore.created", address);
      return { value: { file, address } };
    },
  );
}
