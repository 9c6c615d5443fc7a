import { getChain, getEvmChain } from "../chains/open.ts";
import type { OptionRow } from "../db/options.ts";
import type { Mode } from "../db/tables.ts";
import type { PaymentDeps } from "./deps.ts";
import { listEvmActions } from "./evm-actions.ts";
import { buildSolanaAction } from "./solana-actions.ts";
import type { BuildAction, WalletAction } from "./views.ts";

/** What an option is shown with: its actions, or how to have them made when the buyer has chosen it. */
export function offeredActions(
  deps: Pick<PaymentDeps, "chains">,
  row: OptionRow,
): readonly (WalletAction | BuildAction)[] {
  const chain = getChain(deps.chains, row.chain);
  return chain.family === "evm" ? listEvmActions(chain, row) : [{ build: buildDataOf(row) }];
}

/** What the build action of an option carries. */
export function buildDataOf(option: Pick<OptionRow, "id">): string {
  return option.id;
}

/** What a wallet has to do for an option, in order; each action gives one result. */
export async function listWalletActions(
  deps: PaymentDeps,
  args: { option: OptionRow; mode: Mode },
): Promise<readonly WalletAction[]> {
  const { option } = args;
  if (option.kind === "spl") return [await buildSolanaAction(deps, args)];
  return listEvmActions(getEvmChain(deps.chains, option.chain), option);
}
