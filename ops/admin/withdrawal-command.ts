import type { Command } from "commander";
import { canonicalAddress, canonicalAsset } from "../../chains/canonical-ids.ts";
import { sign } from "../../payments/merchants/sign-decisions.ts";
import { type AddAction, parseMinorUnits, toJsonLine, UsageError } from "./command.ts";
import { addSigningOptions, readSigningKey } from "./signing-options.ts";

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
        .requiredOption("--amount <minor units>", "the amount", parseMinorUnits)
        .requiredOption("--receiver <address>", "the account that receives it")
        .requiredOption("--reference <name>", "your own name for it; a reference is paid once"),
    ),
    async (context, _args, { asset = "", amount = "", receiver = "", reference = "", ...options }) => {
      const by = readSigningKey(context, options);
      if (!by) throw new UsageError("an approval must be signed: name the key file with --sign and yourself with --as");
      const one = { asset: canonicalAsset(asset), receiver: canonicalAddress(asset, receiver), reference };
      const subject = { action: "withdraw capital", ...one, amount: BigInt(amount) } as const;
      await context.record("withdrawal.approved", reference);
      const approval = sign(context, { subject, by });
      return { value: approval, lines: [toJsonLine(approval)] };
    },
  );
}
