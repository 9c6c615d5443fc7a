import { findSourceFault, readTokenAccount } from "./mints.ts";
import type { SolanaChain, SolanaToken } from "./open.ts";
import { findTokenAccount } from "./payment.ts";
import { readAccounts } from "./reads.ts";

/** What accounts can spend of tokens out of their associated accounts, minor units, in the order asked. */
export async function readSpendable(
  chain: SolanaChain,
  wanted: readonly { account: string; token: SolanaToken }[],
): Promise<bigint[]> {
  const places = wanted.map(({ account, token }) => findTokenAccount(account, token.token, token.program));
  const found = await readAccounts(chain, places);
  return found.map((place, index) => {
    const want = wanted[index];
    const held = place && readTokenAccount(place.data);
    const fault = want && findSourceFault(held, { mint: want.token.token, owner: want.account, amount: 0n });
    return held && !fault ? held.amount : 0n;
  });
}
