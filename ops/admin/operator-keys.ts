import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { type Command, InvalidArgumentError } from "commander";
import { canonicalAddress, canonicalAsset } from "../../chains/canonical-ids.ts";
import { type SigningKey, sign } from "../../payments/merchants/sign-decisions.ts";
import { readNetworks } from "../../runtime/networks/read-networks.ts";
import { errorCode } from "../../runtime/redaction.ts";
import { type AddAction, type Context, RefusedError, UsageError } from "./command.ts";

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

/** Parses an amount in minor units. */
export function minorUnits(text: string): string {
  if (!/^[1-9]\d{0,77}$/.test(text)) throw new InvalidArgumentError("expected a whole number of minor units");
  return text;
}

/** Adds to `payouts` the command that signs an operator's approval of a withdrawal, for the file that `signer withdraw` reads. */
export function addWithdrawalCommand(payouts: Command, addAction: AddAction): void {
  addAction(
    addSigningOptions(
      payouts
        .command("approve-withdrawal")
        .description(
          "sign your approval of a withdrawal from a treasury for the file of `signer withdraw`, on EVM chains and Solana; the signer requires two operators",
        )
        .requiredOption("--asset <caip19>", "the asset")
        .requiredOption("--amount <minor units>", "the amount", minorUnits)
        .requiredOption("--receiver <address>", "the account that receives it")
        .requiredOption("--reference <name>", "your own name for it; a reference is paid once"),
    ),
    async (context, _args, { asset = "", amount = "", receiver = "", reference = "", ...options }) => {
      const by = readSigningKey(context, options);
      if (!by) throw new UsageError("an approval must be signed: name the key file with --sign and yourself with --as");
      const one = { asset: canonicalAsset(asset), receiver: canonicalAddress(asset, receiver), reference };
      const subject = { action: "withdraw capital", ...one, amount: BigInt(amount) } as const;
      await context.record("withdrawal.approved", reference);
      return { value: sign(context, { subject, by }) };
    },
  );
}

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

function publicKeyOf(key: KeyObject): string {
  const { x = "" } = createPublicKey(key).export({ format: "jwk" });
  return Buffer.from(x, "base64url").toString("hex");
}
