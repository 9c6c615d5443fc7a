import { getSolanaToken, type SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { readSpendable } from "../../chains/solana/spendable-balances.ts";
import { readSolanaRow } from "../../db/chain-families.ts";
import type { WalletDriver } from "../wallet-driver.ts";
import { blockhashEnd, buildSolanaAction } from "./wallet-actions.ts";

/** Returns what a Solana cluster asks of buyers' wallets. */
export function solanaWallets(chain: SolanaChain): WalletDriver {
  return {
    // The blockhash of the signed transaction limits its validity.
    validBefore: () => null,
    optionEnd: (now) => blockhashEnd(chain, now),
    readAllowances: async (wanted) => {
      const payers = wanted.map(({ asset, payer }) => ({ token: getSolanaToken(chain, asset), account: payer }));
      const spendable = await readSpendable(chain, payers);
      return wanted.map(({ amount }, index) => ((spendable[index] ?? 0n) >= amount ? null : undefined));
    },
    // A blockhash is valid for about a minute, so the transaction is built when the buyer has chosen the option.
    listActions: () => undefined,
    buildActions: async (deps, { option, mode }) => [
      await buildSolanaAction(deps, chain, { option: readSolanaRow(option), mode }),
    ],
    openTestWallet: () => undefined,
  };
}
