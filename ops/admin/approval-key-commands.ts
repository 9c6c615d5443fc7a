import type { Command } from "commander";
import { findMerchantOwner } from "../../payments/maintenance/operator-actions.ts";
import { listApprovalKeys, registerApprovalKey, revokeApprovalKey } from "../../payments/merchants/approval-keys.ts";
import { type AddAction, type Context, RefusedError, UsageError, unwrap } from "./command.ts";

/** Adds the commands for the public keys by which merchants approve changes of their destinations. */
export function addApprovalKeyCommands(program: Command, addAction: AddAction): void {
  const keys = program
    .command("approval-keys")
    .description("public keys by which merchants approve changes of their destinations");
  addAction(
    keys.command("list <merchant>").description("list the keys of a merchant, newest first, also revoked ones"),
    async (context, [merchantId = ""]) => ({
      value: unwrap(await listApprovalKeys(context, await ownerOf(context, merchantId))),
    }),
  );
  addAction(
    keys
      .command("register <merchant> <publicKey>")
      .description("register a public key (Ed25519, hex), which counts after the waiting period"),
    async (context, [merchantId = "", publicKey = ""]) => {
      const args = { ...(await ownerOf(context, merchantId)), publicKey: parseKey(publicKey) };
      const actor = await context.actor("approver");
      return { value: unwrap(await registerApprovalKey(context, { ...args, actor })) };
    },
  );
  addAction(
    keys
      .command("revoke <merchant> <publicKey>")
      .description("revoke a key for good; changes then wait for their whole period"),
    async (context, [merchantId = "", publicKey = ""]) => {
      const args = { ...(await ownerOf(context, merchantId)), publicKey: parseKey(publicKey) };
      const actor = await context.actor();
      return { value: unwrap(await revokeApprovalKey(context, { ...args, actor })) };
    },
  );
}

async function ownerOf(context: Context, merchantId: string) {
  const owner = await findMerchantOwner(context, merchantId);
  if (!owner) throw new RefusedError(`there is no merchant ${merchantId}`);
  return { ...owner, merchantId };
}

function parseKey(text: string): string {
  if (!/^[0-9a-f]{64}$/.test(text)) throw new UsageError("publicKey: expected 32 bytes in lower-case hex");
  return text;
}
