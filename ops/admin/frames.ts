import type { Command } from "commander";
import { addFrameOrigin, listFrameOrigins, removeFrameOrigin } from "../../payments/frames.ts";
import { needAccount } from "./accounts.ts";
import { need, RefusedError, type Runs } from "./tool.ts";

/** Which sites may show the data page of an account's payments in a frame of theirs. */
export function addFrameCommands(program: Command, runs: Runs): void {
  const frames = program.command("frames").description("sites that may frame the page that asks buyers for their data");
  runs(
    frames.command("list <account>").description("the origins that an account lists"),
    async (tool, [accountId = ""]) => {
      await needAccount(tool, accountId);
      return { value: await listFrameOrigins(tool, accountId) };
    },
  );
  runs(
    frames
      .command("add <account> <origin>")
      .description("let a site frame it: an exact origin, for example https://wallet.example"),
    async (tool, [accountId = "", origin = ""]) => {
      await needAccount(tool, accountId);
      const value = need(await addFrameOrigin(tool, { accountId, origin }));
      await tool.record(`frames add ${origin}`, accountId);
      return { value };
    },
  );
  runs(
    frames.command("remove <account> <origin>").description("let a site frame it no longer"),
    async (tool, [accountId = "", origin = ""]) => {
      await needAccount(tool, accountId);
      if (!(await removeFrameOrigin(tool, { accountId, origin })))
        throw new RefusedError(`${origin} is not on the list of ${accountId}`);
      await tool.record(`frames remove ${origin}`, accountId);
      return { value: await listFrameOrigins(tool, accountId) };
    },
  );
}
