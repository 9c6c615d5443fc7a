import { PublicKey } from "@solana/web3.js";
import { readTokenAccount } from "./mints.ts";
import type { SolanaChain } from "./open.ts";

/**
 * What the treasury holds of tokens (minor units) and lanes of SOL (lamports), all as of one final slot, in the orders
 * asked; one call. An account that is not there holds nothing.
 */
export async function readFinalBalances(
  chain: SolanaChain,
  args: { tokenAccounts: readonly string[]; lanes: readonly string[] },
): Promise<{ slot: number; tokens: bigint[]; lanes: bigint[] }> {
  const { tokenAccounts, lanes } = args;
  const { context, value } = await chain.rpc.ask("getMultipleAccounts", (connection) =>
    connection.getMultipleAccountsInfoAndContext(
      [...tokenAccounts, ...lanes].map((address) => new PublicKey(address)),
      "finalized",
    ),
  );
  return {
    slot: context.slot,
    tokens: tokenAccounts.map((_, index) => {
      const data = value[index]?.data;
      return (data && readTokenAccount(data)?.amount) ?? 0n;
    }),
    lanes: lanes.map((_, index) => BigInt(value[tokenAccounts.length + index]?.lamports ?? 0)),
  };
}
