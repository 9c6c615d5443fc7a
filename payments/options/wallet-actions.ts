import { withCallPriority } from "../../chains/call-priority.ts";
import { getChain } from "../../chains/open-chains.ts";
import type { OptionRow } from "../../db/queries/payment-options.ts";
import type { Mode } from "../../db/tables.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import type { WalletAction } from "../../transfers/wallet-driver.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { BuildAction } from "../views.ts";

/** Returns the actions that an option is listed with: its wallet actions, or a build action that fetches them later. */
export function offeredActions(
  { chains }: Pick<PaymentDeps, "chains">,
  row: OptionRow,
): readonly (WalletAction | BuildAction)[] {
  const { wallets } = getTransferDriver(getChain(chains, row.chain));
  return wallets.listActions(row) ?? [{ build: buildDataOf(row) }];
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
  const { wallets } = getTransferDriver(getChain(deps.chains, option.chain));
  return withCallPriority("convenience", () => wallets.buildActions(deps, { option, mode }));
}
