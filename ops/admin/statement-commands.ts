import type { Command } from "commander";
import { canonicalAddress, canonicalAsset } from "../../chains/canonical-ids.ts";
import { sign } from "../../payments/merchants/sign-decisions.ts";
import type { StatementSubject } from "../../signer/statements.ts";
import { type AddAction, type Context, toJsonLine, UsageError } from "./command.ts";
import { addSigningOptions, readSigningKey } from "./signing-options.ts";

/**
 * Adds the commands that sign a decision for `signer decide`. They work without the database, which a thief may control, and
 * therefore leave no audit entry: the signer records what it follows.
 */
export function addStatementCommands(program: Command, addAction: AddAction): void {
  const group = program
    .command("statements")
    .description("decisions that you sign for `signer decide`, when the database cannot be trusted with them");
  for (const decision of ["approve", "reject"] as const)
    addAction(
      addSigningOptions(
        group
          .command(`${decision}-destination`)
          .description(`sign that the signer ${decision}s a destination of a merchant that waits`)
          .requiredOption("--merchant <id>", "the merchant")
          .requiredOption("--asset <caip19>", "the asset")
          .requiredOption("--receiver <address>", "the receiver, as `signer waiting` shows it"),
      ),
      async (context, _args, { merchant: merchantId = "", asset = "", receiver = "", ...options }) => {
        const one = { merchantId, asset: canonicalAsset(asset), receiver: canonicalAddress(asset, receiver) };
        return write(context, { action: `${decision} destination`, ...one }, options);
      },
    );
  addAction(
    addSigningOptions(
      group
        .command("revoke-approval-key")
        .description("sign that the signer revokes an approval key of a merchant for good")
        .requiredOption("--merchant <id>", "the merchant")
        .requiredOption("--key <hex>", "the public key"),
    ),
    async (context, _args, { merchant: merchantId = "", key: publicKey = "", ...options }) =>
      write(context, { action: "revoke approval key", merchantId, publicKey }, options),
  );
}

/** Returns the output of a command that signs: the file that `signer decide` reads. */
function write(context: Context, subject: StatementSubject, options: Record<string, string | undefined>) {
  const by = readSigningKey(context, options);
  if (!by) throw new UsageError("a statement must be signed: name the key file with --sign and yourself with --as");
  const statement = sign(context, { subject, by });
  return { value: statement, lines: [toJsonLine(statement)] };
}
