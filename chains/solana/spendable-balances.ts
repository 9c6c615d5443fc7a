import { findTokenAccount } from "./build-payment.ts";
import { readAccounts } from "./cluster-state.ts";
import { readTokenAccount, validateSourceAccount } from "./mints.ts";
import type { SolanaChain, SolanaToken } from "./open-solana-chain.ts";

/** Returns the spendable balances of associated token accounts, in minor units and in the order of `wanted`. */
export async function readSpendable(
  chain: SolanaChain,
  wanted: readonly { account: string; token: SolanaToken }[],
): Promise<bigint[]> {
  const addresses = wanted.map(({ account, token }) => findTokenAccount(account, token.token, token.program));
  const accounts = await readAccounts(chain, addresses);
  return accounts.map((account, index) => {
    const want = wanted[index];
    const facts = account && readTokenAccount(account.data);
    const error = want && validateSourceAccount(facts, { mint: want.token.token, owner: want.account, amount: 0n });
    return facts && !error ? facts.amount : 0n;
  });
}
