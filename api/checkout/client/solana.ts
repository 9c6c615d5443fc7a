import { getWallets } from "@wallet-standard/app";
import { safeIcon, safeName, type Wallet, WrongAccount } from "./wallets.ts";

type Standard = ReturnType<ReturnType<typeof getWallets>["get"]>[number];
type WalletAccount = Standard["accounts"][number];
type Connect = { connect: () => Promise<{ accounts: readonly WalletAccount[] }> };
type Sign = {
  signTransaction: (
    ...inputs: { account: WalletAccount; transaction: Uint8Array; chain: string }[]
  ) => Promise<readonly { signedTransaction: Uint8Array }[]>;
};

/** What wallets call the clusters that CAIP-2 names by their first block. */
const clusters: Record<string, string> = {
  "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp": "solana:mainnet",
  "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1": "solana:devnet",
  "solana:4uhcVJyU9pJkvQyS88uRDiswHScsKQ2Y": "solana:testnet",
};
const clusterOf = (chain: string): string => clusters[chain] ?? "solana:localnet";

/**
 * Finds wallets by the Wallet Standard, for as long as the page lives. They sign and do not send: we pay the fee, so the
 * transaction is not whole when they have signed it.
 */
export function findSolanaWallets(chains: readonly string[], add: (wallet: Wallet) => void): void {
  const { get, on } = getWallets();
  const offer = (...wallets: readonly Standard[]): void => {
    for (const wallet of wallets) if (canPay(wallet, chains)) add(toWallet(wallet, chains));
  };
  on("register", offer);
  offer(...get());
}

const canPay = ({ features, chains: theirs }: Standard, ours: readonly string[]): boolean =>
  "standard:connect" in features &&
  "solana:signTransaction" in features &&
  ours.some((chain) => theirs.some((one) => one === clusterOf(chain)));

let count = 0;

function toWallet(wallet: Standard, chains: readonly string[]): Wallet {
  const { connect } = wallet.features["standard:connect"] as Connect;
  const { signTransaction } = wallet.features["solana:signTransaction"] as Sign;
  const find = (account: string): WalletAccount | undefined =>
    wallet.accounts.find(({ address }) => account.endsWith(`:${address}`));
  count += 1;
  return {
    key: `solana:${count}`,
    name: safeName(wallet.name),
    icon: safeIcon(wallet.icon),
    async connect() {
      const { accounts } = await connect();
      return accounts.flatMap(({ address, chains: theirs }) =>
        chains.filter((chain) => theirs.some((one) => one === clusterOf(chain))).map((chain) => `${chain}:${address}`),
      );
    },
    // An account knows its cluster: there is nothing to turn.
    turnTo: async () => undefined,
    holds: async (account) => find(account) !== undefined,
    async perform({ chain_id: chain, method, params }, payer) {
      if (method !== "solana_signTransaction") throw new Error(`a page does not ask for ${method}`);
      const account = find(payer);
      if (!account) throw new WrongAccount();
      const [{ transaction }] = params as [{ transaction: string }];
      const [signed] = await signTransaction({
        account,
        transaction: fromBase64(transaction),
        chain: clusterOf(chain),
      });
      if (!signed) throw new Error("the wallet gave nothing");
      return toBase64(signed.signedTransaction);
    },
    settle: async () => undefined,
  };
}

const fromBase64 = (text: string): Uint8Array => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
const toBase64 = (bytes: Uint8Array): string => btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(""));
