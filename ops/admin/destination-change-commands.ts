import type { Command } from "commander";
import { decideChange, findChangeOwner, listAllChanges } from "../../payments/merchants/decide-changes.ts";
import { type AddAction, oneOf, RefusedError, unwrap, wholeNumber } from "./command.ts";
import { addSigningOptions, readSigningKey } from "./operator-keys.ts";

const parseState = oneOf("requested", "approved", "applied", "rejected");

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
      const filter = { merchantId, state: state === undefined ? undefined : parseState(state), limit: Number(limit) };
      return { value: await listAllChanges(context, filter) };
    },
  );
  for (const [decision, what] of [
    ["approve", "apply a requested change now, before its waiting period ends"],
    ["reject", "reject a requested change; the destination stays as it is"],
  ] as const)
    addAction(
      addSigningOptions(destinations.command(`${decision} <change>`).description(what)).addHelpText(
        "after",
        "\nA signer of its own waits by its own clock, whatever the database says. It follows a decision that --sign signs.",
      ),
      async (context, [changeId = ""], options) => {
        const owner = await findChangeOwner(context, changeId);
        if (!owner) throw new RefusedError(`there is no change ${changeId}`);
        const by = readSigningKey(context, options);
        const actor = await context.actor(decision === "approve" ? "approver" : "operator");
        unwrap(await decideChange(context, { ...owner, changeId, actor, decision, by }));
        return { value: (await listAllChanges(context, { changeId, limit: 1 }))[0] };
      },
    );
}
