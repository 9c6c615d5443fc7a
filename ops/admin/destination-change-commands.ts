import type { Command } from "commander";
import { decideChange, findChangeOwner, listAllChanges } from "../../payments/merchants/decide-changes.ts";
import type { Voucher } from "../../payments/merchants/sign-decisions.ts";
import { type AddAction, type Context, oneOf, RefusedError, UsageError, unwrap, wholeNumber } from "./command.ts";
import { requireMerchant } from "./require-merchant.ts";
import { addSigningOptions, readSigningKey } from "./signing-options.ts";

const parseState = oneOf("requested", "approved", "applied", "rejected");

const SIGNING_HELP = `
A signer of its own waits by its own clock, whatever the database says. It follows a decision that --sign signs.
--sign requires --merchant, --asset and --receiver. Take them from the merchant, by a contact that you had before the request,
and not from "destinations list": who can write the database can change what is listed. The command signs what you name, and
is refused (exit 1) when the change asks for something else.

Example:
  npm run admin -- destinations approve dchg_0123… --sign alice.key --as alice --merchant mrch_0123… \\
    --asset eip155:1/erc20:0x… --receiver 0x…`;

/** Adds the commands that list and decide requested changes of destinations. */
export function addDestinationChangeCommands(destinations: Command, addAction: AddAction): void {
  addAction(
    destinations
      .command("list")
      .description("list requested changes of destinations with the key or operator that requested each, newest first")
      .option("--state <state>", "requested (these wait), approved, applied or rejected", parseState)
      .option("--merchant <id>", "only of this merchant")
      .option("--limit <number>", "most rows to list", wholeNumber, "50"),
    async (context, _args, { state, merchant: merchantId, limit }) => {
      if (merchantId !== undefined) await requireMerchant(context, merchantId);
      const filter = { merchantId, state: state === undefined ? undefined : parseState(state), limit: Number(limit) };
      return { value: await listAllChanges(context, filter) };
    },
  );
  for (const [decision, what] of [
    ["approve", "apply a requested change now, before its waiting period ends"],
    ["reject", "reject a requested change; the destination stays as it is"],
  ] as const)
    addAction(
      addSigningOptions(destinations.command(`${decision} <change>`).description(what))
        .option("--merchant <id>", "with --sign: the merchant whom you have asked")
        .option("--asset <caip19>", "with --sign: the asset")
        .option("--receiver <address>", "with --sign: the receiver, as the merchant has confirmed it")
        .addHelpText("after", SIGNING_HELP),
      async (context, [changeId = ""], options) => {
        const owner = await findChangeOwner(context, changeId);
        if (!owner) throw new RefusedError(`there is no change ${changeId}`);
        const by = readVoucher(context, options);
        const actor = await context.actor(decision === "approve" ? "approver" : "operator");
        unwrap(await decideChange(context, { ...owner, changeId, actor, decision, by }));
        return { value: (await listAllChanges(context, { changeId, limit: 1 }))[0] };
      },
    );
}

/** Returns the operator's key with what they verified, or undefined without --sign. */
function readVoucher(context: Context, options: Record<string, string | undefined>): Voucher | undefined {
  const by = readSigningKey(context, options);
  const { merchant: merchantId, asset, receiver } = options;
  const names = [merchantId, asset, receiver];
  if (!by && names.every((name) => name === undefined)) return undefined;
  if (!by || merchantId === undefined || asset === undefined || receiver === undefined)
    throw new UsageError(
      "--sign requires --merchant, --asset and --receiver as you verified them, and these require --sign",
    );
  return { ...by, verified: { merchantId, asset, receiver } };
}
