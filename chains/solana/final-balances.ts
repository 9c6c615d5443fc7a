import { PublicKey } from "@solana/web3.js";
import type { HeldBalances, Holding } from "../chain-driver.ts";
import { readTokenAccount } from "./mints.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/**
 * Reads our balances as of one final slot, tokens in minor units and lanes in lamports, with one call. A missing account has
 * a balance of 0. A token that has left the networks file can no longer be located.
 */
export async function readFinalBalances(chain: SolanaChain, holdings: readonly Holding[]): Promise<HeldBalances> {
  const addresses = holdings.map((holding) =>
    "lane" in holding ? holding.lane : chain.tokens.get(holding.asset)?.treasuryAccount,
  );
  const located = [...new Set(addresses.filter((address) => address !== undefined))];
  const { context, value } = await chain.rpc.ask("getMultipleAccounts", (connection) =>
    connection.getMultipleAccountsInfoAndContext(
      located.map((address) => new PublicKey(address)),
      "finalized",
    ),
  );
  const accounts = new Map(located.map((address, index) => [address, value[index]]));
  const balances = holdings.map((holding, index) => {
    const address = addresses[index];
    if (address === undefined) return undefined;
    const account = accounts.get(address);
    if ("lane" in holding) return BigInt(account?.lamports ?? 0);
    return (account && readTokenAccount(account.data)?.amount) ?? 0n;
  });
  return { height: context.slot, balances };
}
