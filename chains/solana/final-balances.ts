import { PublicKey } from "@solana/web3.js";
import type { FinalBalance, HeldBalances, Holding } from "../chain-driver.ts";
import { readAccountsAt } from "./cluster-state.ts";
import { readTokenAccount } from "./mints.ts";
import { getSolanaToken, type SolanaChain } from "./open-solana-chain.ts";
import { findMarker, isMarker } from "./payout-markers.ts";

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

/**
 * Reads the treasury's balance of a token and the marker of a payout as of one final slot, with one call. Throws ChainError.
 * @param of.nonce the payout's nonce
 */
export async function readFinalBalance(
  chain: SolanaChain,
  { asset, nonce }: { asset: string; nonce: string | undefined },
): Promise<FinalBalance> {
  const { treasuryAccount } = getSolanaToken(chain, asset);
  const marker = nonce === undefined ? [] : [findMarker(chain.treasury, nonce).address];
  const { slot, accounts } = await readAccountsAt(chain, [treasuryAccount, ...marker], "finalized");
  const [held, marked] = accounts;
  return { height: slot, balance: (held && readTokenAccount(held.data)?.amount) ?? 0n, isMade: isMarker(marked) };
}
