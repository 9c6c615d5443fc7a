import { getWallets } from "@wallet-standard/app";
import { type FindWallets, safeIcon, safeName, type Wallet, WrongAccount } from "./wallet-interface.ts";

type StandardWallet = ReturnType<ReturnType<typeof getWallets>["get"]>[number];
type WalletAccount = StandardWallet["accounts"][number];
/** A wallet with the features that paying needs. */
type PayingWallet = StandardWallet & {
  features: { "standard:connect": ConnectFeature; "solana:signTransaction": SignFeature };
};
type ConnectFeature = { connect: () => Promise<{ accounts: readonly WalletAccount[] }> };
type SignFeature = {
  signTransaction: (
    ...inputs: { account: WalletAccount; transaction: Uint8Array; chain: string }[]
  ) => Promise<readonly { signedTransaction: Uint8Array }[]>;
};

/** Wallet Standard names of the clusters, by CAIP-2 identifier. */
const clusters: Record<string, string> = {
  "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp": "solana:mainnet",
  "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1": "solana:devnet",
  "solana:4uhcVJyU9pJkvQyS88uRDiswHScsKQ2Y": "solana:testnet",
};
const clusterOf = (chain: string): string => clusters[chain] ?? "solana:localnet";

/**
 * Finds wallets by the Wallet Standard while the page is open. Wallets sign and do not send: the service pays the fee, so
 * the transaction still lacks the fee payer's signature.
 */
export const findSolanaWallets: FindWallets = (chains, { add }) => {
  const { get, on } = getWallets();
  const addWallets = (...wallets: readonly StandardWallet[]): void => {
    for (const wallet of wallets) if (canPay(wallet, chains)) add(toWallet(wallet, chains));
  };
  on("register", addWallets);
  addWallets(...get());
};

const canPay = (wallet: StandardWallet, chains: readonly string[]): wallet is PayingWallet =>
  "standard:connect" in wallet.features &&
  "solana:signTransaction" in wallet.features &&
  chains.some((chain) => wallet.chains.some((cluster) => cluster === clusterOf(chain)));

let count = 0;

function toWallet(wallet: PayingWallet, chains: readonly string[]): Wallet {
  const { connect } = wallet.features["standard:connect"];
  const { signTransaction } = wallet.features["solana:signTransaction"];
  const find = (account: string): WalletAccount | undefined =>
    wallet.accounts.find(({ address }) => account.endsWith(`:${address}`));
  count += 1;
  return {
    key: `solana:${count}`,
    chains,
    name: safeName(wallet.name),
    icon: safeIcon(wallet.icon),
    async connect() {
      const { accounts } = await connect();
      return accounts.flatMap(({ address, chains: accountChains }) =>
        chains
          .filter((chain) => accountChains.some((cluster) => cluster === clusterOf(chain)))
          .map((chain) => `${chain}:${address}`),
      );
    },
    // A Solana account names its clusters itself: there is nothing to switch.
    switchTo: async () => undefined,
    hasAccount: async (account) => find(account) !== undefined,
    async execute({ chain_id: chain, method, params }, payer) {
      if (method !== "solana_signTransaction") throw new Error(`the page does not support the method ${method}`);
      const account = find(payer);
      if (!account) throw new WrongAccount();
      const [{ transaction }] = params as [{ transaction: string }];
      const [signed] = await signTransaction({
        account,
        transaction: fromBase64(transaction),
        chain: clusterOf(chain),
      });
      if (!signed) throw new Error("the wallet returned no transaction");
      return toBase64(signed.signedTransaction);
    },
    awaitReceipt: async () => undefined,
  };
}

const fromBase64 = (text: string): Uint8Array => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
const toBase64 = (bytes: Uint8Array): string => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
