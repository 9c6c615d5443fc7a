import { PublicKey } from "@solana/web3.js";
import { readTokenAccount } from "./mints.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/**
 * Reads the treasury's token balances (minor units) and the lanes' SOL balances (lamports) as of one final slot, in the
 * given orders, with one call. A missing account has a balance of 0.
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
