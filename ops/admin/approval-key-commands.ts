import type { Command } from "commander";
import { listApprovalKeys, registerApprovalKey, revokeApprovalKey } from "../../payments/merchants/approval-keys.ts";
import { type AddAction, UsageError, unwrap } from "./command.ts";
import { requireMerchant } from "./require-merchant.ts";

/** Adds the commands for the public keys by which merchants approve changes of their destinations. */
export function addApprovalKeyCommands(program: Command, addAction: AddAction): void {
  const keys = program
    .command("approval-keys")
    .description("public keys by which merchants approve changes of their destinations");
  addAction(
    keys.command("list <merchant>").description("list the keys of a merchant, newest first, also revoked ones"),
    async (context, [merchantId = ""]) => ({
      value: unwrap(await listApprovalKeys(context, await requireMerchant(context, merchantId))),
    }),
  );
  addAction(
    keys
      .command("register <merchant> <publicKey>")
      .description("register a public key (Ed25519, hex), which counts after the waiting period"),
    async (context, [merchantId = "", publicKey = ""]) => {
      const args = { ...(await requireMerchant(context, merchantId)), publicKey: parseKey(publicKey) };
      const actor = await context.actor("approver");
      return { value: unwrap(await registerApprovalKey(context, { ...args, actor })) };
    },
  );
  addAction(
    keys
      .command("revoke <merchant> <publicKey>")
      .description("revoke a key for good; changes then wait for their whole period"),
    async (context, [merchantId = "", publicKey = ""]) => {
      const args = { ...(await requireMerchant(context, merchantId)), publicKey: parseKey(publicKey) };
      const actor = await context.actor();
      return { value: unwrap(await revokeApprovalKey(context, { ...args, actor })) };
    },
  );
}

function parseKey(text: string): string {
  if (!/^[0-9a-f]{64}$/.test(text)) throw new UsageError("publicKey: expected 32 bytes in lower-case hex");
  return text;
}
