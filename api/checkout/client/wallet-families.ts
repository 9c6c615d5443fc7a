import { findEvmWallets } from "./find-evm-wallets.ts";
import { findSolanaWallets } from "./find-solana-wallets.ts";
import type { FindWallets } from "./wallet-interface.ts";

/** The functions that find the wallets of each chain family, by CAIP-2 namespace. */
export const walletFinders: Readonly<Record<string, FindWallets>> = {
  eip155: findEvmWallets,
  solana: findSolanaWallets,
};
