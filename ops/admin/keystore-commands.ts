import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { hexToBytes } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { encryptKeystore } from "../../chains/signers/keystore-file.ts";
import { openSeed, parseSecret, SECRET_FORMAT } from "../../chains/solana/ed25519-keys.ts";
import { isPrivateKey } from "../../runtime/networks/read-networks.ts";
import { errorCode } from "../../runtime/redaction.ts";
import { type AddAction, oneOf, RefusedError, UsageError } from "./command.ts";

/** Adds the commands for encrypted key files, which the networks file names as `keystore`. */
export function addKeystoreCommands(program: Command, addAction: AddAction): void {
  const keystores = program
    .command("keystores")
    .description("encrypted files with the private keys of lanes and treasuries");
  addAction(
    keystores
      .command("new <file>")
      .description("write an encrypted private key: a new one, or the one that --key names; needs no database")
      .requiredOption("--password <variable>", "the name of the environment variable with the password")
      .option("--key <variable>", "the name of the environment variable with the private key")
      .option("--for <family>", "the chain family of the key: evm or solana", parseFamily, "evm")
      .addHelpText(
        "after",
        "\nKeys are read as 0x and 64 hex digits for EVM chains. For Solana they are 64 bytes in base58, or the array of 64\nnumbers that solana-keygen writes.",
      ),
    // It writes no audit entry: the first keys are made before there is a database.
    async ({ env }, [file = ""], { password = "", key: variable, for: family }) => {
      const text = readNamed("--password", password, env);
      const given = variable === undefined ? undefined : readNamed("--key", variable, env).trim();
      const key = openKey[parseFamily(family)](given);
      // Only the owner can read the file. An existing file is never overwritten.
      await writeFile(file, await encryptKeystore(key, text), { mode: 0o600, flag: "wx" }).catch((error: unknown) => {
        throw new RefusedError(`${file} cannot be written (${errorCode(error)})`);
      });
      return { value: { file, address: key.address } };
    },
  );
}

const parseFamily = oneOf("evm", "solana");

/** Reads the environment variable that an option names. No message shows the name: it may be the secret, typed in its place. */
function readNamed(option: string, name: string, env: NodeJS.ProcessEnv): string {
  const text = env[name];
  if (!text) throw new UsageError(`${option}: expected the name of an environment variable that is set, not its value`);
  return text;
}

/** The 32 secret bytes of a key, and its address. */
type Opened = { secret: Uint8Array; address: string };

/** Opens a key, or makes a new one, by chain family. */
const openKey = { evm: openEvmKey, solana: openSolanaKey } as const;

function openEvmKey(given: string | undefined): Opened {
  if (given !== undefined && !isPrivateKey(given)) throw new UsageError("--key: expected 0x and 64 hex digits");
  const key = given ?? generatePrivateKey();
  return { secret: hexToBytes(key), address: privateKeyToAddress(key) };
}

function openSolanaKey(given: string | undefined): Opened {
  const secret = given === undefined ? randomBytes(32) : parseSecret(given);
  if (!secret) throw new UsageError(`--key: expected ${SECRET_FORMAT}`);
  const seed = secret.subarray(0, 32);
  return { secret: seed, address: openSeed(seed).address };
}
