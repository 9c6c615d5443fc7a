import { readTokenAccount } from "./mints.ts";
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
    const held = place && readTokenAccount(place.data);
    return held && !held.frozen && held.mint === wanted[index]?.token.token ? held.amount : 0n;
  });
}
