import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { hexToBytes } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { encryptKeystore } from "../../chains/signers/keystore-file.ts";
import { openSeed, parseSecret } from "../../chains/solana/ed25519-keys.ts";
import { ConfigError } from "../../runtime/config.ts";
import { readKey, readSecret } from "../../runtime/networks/read-networks.ts";
import { errorCode } from "../../runtime/redaction.ts";
import { type AddAction, RefusedError, UsageError } from "./command.ts";

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
      .option("--key <variable>", "the environment variable with the private key")
      .option("--for <family>", "the chain family of the key: evm or solana", "evm"),
    async ({ env, record, actor }, [file = ""], { password = "", key: variable, for: family = "" }) => {
      const open = families.get(family);
      if (!open) throw new UsageError(`the chain family ${family} is not known; the families are evm and solana`);
      // Refuses an unknown operator before anything happens outside of Postgres.
      await actor();
      const text = readSecret({ env: password }, env);
      const key = open(variable, env);
      // Only the owner can read the file. An existing file is never overwritten.
      await writeFile(file, await encryptKeystore(key, text), { mode: 0o600, flag: "wx" }).catch((error: unknown) => {
        throw new RefusedError(`${file} cannot be written (${errorCode(error)})`);
      });
      await record("keystore.created", key.address);
      return { value: { file, address: key.address } };
    },
  );
}

/** The 32 secret bytes of a key, and its address. */
type Opened = { secret: Uint8Array; address: string };
type OpenKey = (variable: string | undefined, env: NodeJS.ProcessEnv) => Opened;

/** Opens the key in a variable, or makes a new one, by chain family. */
const families: ReadonlyMap<string, OpenKey> = new Map([
  ["evm", openEvmKey],
  ["solana", openSolanaKey],
]);

function openEvmKey(variable: string | undefined, env: NodeJS.ProcessEnv): Opened {
  const key = variable === undefined ? generatePrivateKey() : readKey({ env: variable }, env);
  return { secret: hexToBytes(key), address: privateKeyToAddress(key) };
}

function openSolanaKey(variable: string | undefined, env: NodeJS.ProcessEnv): Opened {
  const secret = variable === undefined ? randomBytes(32) : parseSecret(readSecret({ env: variable }, env));
  if (!secret) throw new ConfigError(`environment variable ${variable} is not a Solana keypair of 64 bytes`);
  const seed = secret.subarray(0, 32);
  return { secret: seed, address: openSeed(seed).address };
}
