import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import type { Hex } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { sealKeystore } from "../../chains/evm/signers/keystore.ts";
import { readKey, readSecret } from "../networks.ts";
import { errorCode } from "../redaction.ts";
import { RefusedError, type Runs } from "./tool.ts";

/** Encrypted keystore files, for the networks file's `keystore`. */
export function addKeystoreCommands(program: Command, runs: Runs): void {
  const keystores = program
    .command("keystores")
    .description("encrypted files with private keys of lanes and treasuries");
  runs(
    keystores
      .command("new <file>")
      .description("write a private key, encrypted; a new one unless --key names one")
      .requiredOption("--password <variable>", "the environment variable that holds the password")
      .option("--key <variable>", "the environment variable that holds the private key"),
    async (tool, [file = ""], { password = "", key: variable }) => {
      const secret = readSecret({ env: password }, tool.env);
      const key: Hex = variable === undefined ? generatePrivateKey() : readKey({ env: variable }, tool.env);
      // Readable by its owner alone; a file that is there is never written over.
      await writeFile(file, await sealKeystore(key, secret), { mode: 0o600, flag: "wx" }).catch((error: unknown) => {
        throw new RefusedError(`${file} cannot be written (${errorCode(error)})`);
      });
      const address = privateKeyToAddress(key);
      await tool.record("keystores new", address);
      return { value: { file, address } };
    },
  );
}
