import type { Command } from "commander";
import { addFrameOrigin, listFrameOrigins, removeFrameOrigin } from "../../payments/buyer-data/frame-origins.ts";
import { requireAccount } from "./account-commands.ts";
import { type AddAction, RefusedError, unwrap } from "./command.ts";

/** Adds the commands for the sites that may embed the data page of an account's payments in a frame. */
export function addFrameCommands(program: Command, addAction: AddAction): void {
  const frames = program
    .command("frames")
    .description("sites that may embed the page that collects buyer data in a frame");
  addAction(
    frames.command("list <account>").description("list the allowed origins of an account"),
    async (context, [accountId = ""]) => {
      await requireAccount(context, accountId);
      return { value: await listFrameOrigins(context, accountId) };
    },
  );
  addAction(
    frames
      .command("add <account> <origin>")
      .description("allow a site: an exact origin, for example https://wallet.example"),
    async (context, [accountId = "", origin = ""]) => {
      await requireAccount(context, accountId);
      const value = unwrap(await addFrameOrigin(context, { actor: await context.actor(), accountId, origin }));
      return { value };
    },
  );
  addAction(
    frames.command("remove <account> <origin>").description("remove a site"),
    async (context, [accountId = "", origin = ""]) => {
      await requireAccount(context, accountId);
      if (!(await removeFrameOrigin(context, { actor: await context.actor(), accountId, origin })))
        throw new RefusedError(`${origin} is not an allowed origin of ${accountId}`);
      return { value: await listFrameOrigins(context, accountId) };
    },
  );
}
