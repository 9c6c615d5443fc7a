import { getEvmChain } from "../../chains/open-chains.ts";
import type { OptionRow } from "../../db/queries/payment-options.ts";
import type { Mode } from "../../db/tables.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { BuildAction, WalletAction } from "../views.ts";
import { listEvmActions } from "./evm-actions.ts";
import { buildSolanaAction } from "./solana-actions.ts";

/** Returns the actions that an option is listed with: its wallet actions, or a build action that fetches them later. */
export function offeredActions(
  deps: Pick<PaymentDeps, "chains">,
  row: OptionRow,
): readonly (WalletAction | BuildAction)[] {
  if (row.kind === "spl") return [{ build: buildDataOf(row) }];
  return listEvmActions(getEvmChain(deps.chains, row.chain), row);
}

/** Returns the `data` of an option's build action. */
export function buildDataOf(option: Pick<OptionRow, "id">): string {
  return option.id;
}

/** Returns what a wallet has to execute for an option, in order. Each action yields one result. */
export async function listWalletActions(
  deps: PaymentDeps,
  { option, mode }: { option: OptionRow; mode: Mode },
): Promise<readonly WalletAction[]> {
  if (option.kind === "spl") return [await buildSolanaAction(deps, { option, mode })];
  return listEvmActions(getEvmChain(deps.chains, option.chain), option);
}
