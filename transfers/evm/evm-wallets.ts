import { type AccountKind, readAccountKinds } from "../../chains/evm/account-code.ts";
import { readHoldings } from "../../chains/evm/account-holdings.ts";
import { lowerCaseHex } from "../../chains/evm/hex.ts";
import { type EvmChain, type EvmToken, getEvmToken } from "../../chains/evm/open-evm-chain.ts";
import { readEvmRow } from "../../db/chain-families.ts";
import type { Allowance } from "../../db/tables.ts";
import type { WalletDriver } from "../wallet-driver.ts";
import { chooseAllowance } from "./allowances.ts";
import { openTestWallet } from "./test-wallet.ts";
import { listEvmActions } from "./wallet-actions.ts";

/** Returns what an EVM chain asks of buyers' wallets. */
export function evmWallets(chain: EvmChain): WalletDriver {
  return {
    validBefore: (lastRelay) => Math.ceil(lastRelay.getTime() / 1000),
    optionEnd: () => null,
    readAllowances: (wanted) => readAllowances(chain, wanted),
    listActions: (option) => listEvmActions(chain, readEvmRow(option)),
    buildActions: async (_deps, { option }) => listEvmActions(chain, readEvmRow(option)),
    openTestWallet,
  };
}

/** Reads balances and allowances with one multicall. */
async function readAllowances(
  chain: EvmChain,
  wanted: readonly { asset: string; payer: string; amount: bigint }[],
): Promise<(Allowance | null | undefined)[]> {
  const payers = wanted.map(({ asset, payer, amount }) => {
    return { token: getEvmToken(chain, asset), account: lowerCaseHex(payer), amount };
  });
  const [holdings, kinds] = await Promise.all([readHoldings(chain, payers), readKinds(chain, payers)]);
  return payers.map(({ token, account, amount }, index) => {
    const holding = holdings[index];
    const kind = kinds.get(account) ?? "key";
    return holding && chooseAllowance(token, { kind, holding }, amount);
  });
}

/** Returns the kinds of the accounts. Reads them only where the kind changes what is offered. */
async function readKinds(
  chain: EvmChain,
  wanted: readonly { token: EvmToken; account: EvmChain["treasury"] }[],
): Promise<Map<string, AccountKind>> {
  const matters = wanted.some(({ token }) => token.kind !== "eip3009" || !token.bytesSignatures);
  const payers = matters ? [...new Set(wanted.map(({ account }) => account))] : [];
  const kinds = payers.length > 0 ? await readAccountKinds(chain.rpc, payers) : [];
  return new Map(payers.map((payer, index) => [payer, kinds[index] ?? "key"]));
}
