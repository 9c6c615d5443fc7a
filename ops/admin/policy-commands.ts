import type { Command } from "commander";
import {
  addPolicy,
  listPolicies,
  removePolicy,
  validatePolicy,
} from "../../payments/buyer-data/collection-policies.ts";
import { type AddAction, RefusedError, UsageError } from "./command.ts";
import { requireMerchant } from "./require-merchant.ts";

/** Adds the commands for the policies that require data of buyers. */
export function addPolicyCommands(program: Command, addAction: AddAction): void {
  const policies = program.command("policies").description("policies that decide which payments require buyer data");
  addAction(
    policies
      .command("add <merchant>")
      .description("require buyer data for payments")
      .option("--asset <caip19>", "only for payments in this asset")
      .option("--unit <unit>", "only for payments in this unit, for example iso4217/USD; requires --minimum")
      .option("--minimum <value>", "only for payments of this amount or more, in minor units; requires --unit"),
    async (context, [merchantId = ""], { asset, unit, minimum }) => {
      await requireMerchant(context, merchantId);
      if ((unit === undefined) !== (minimum === undefined))
        throw new UsageError("--unit and --minimum require each other");
      if (minimum !== undefined && !/^\d{1,78}$/.test(minimum)) throw new UsageError("--minimum: expected minor units");
      const policy = {
        asset: asset ?? null,
        unit: unit ?? null,
        minimum: minimum === undefined ? null : BigInt(minimum),
      };
      const error = validatePolicy(policy);
      if (error) throw new UsageError(`--${error}`);
      const actor = await context.actor();
      const value = await addPolicy(context, { actor, merchantId, ...policy });
      return { value };
    },
  );
  addAction(
    policies.command("list <merchant>").description("list the policies of a merchant"),
    async (context, [id = ""]) => {
      await requireMerchant(context, id);
      return { value: await listPolicies(context, id) };
    },
  );
  addAction(policies.command("remove <policy>").description("remove a policy"), async (context, [id = ""]) => {
    if (!(await removePolicy(context, { actor: await context.actor(), id })))
      throw new RefusedError(`there is no policy ${id}`);
    return { value: { id, removed: true } };
  });
}
