import type { NetworkAddition } from "../pages/script-data.ts";
import { type FindWallets, safeIcon, safeName, type Wallet, WrongNetwork } from "./wallet-interface.ts";

/** EIP-1193; the caller states the type of a method's result. */
type Provider = { request: <T>(call: { method: string; params?: unknown[] }) => Promise<T> };
type AnnouncedProvider = { info: { uuid: string; name: string; icon?: string }; provider: Provider };

declare global {
  interface Window {
    ethereum?: Provider;
  }
  interface WindowEventMap {
    "eip6963:announceProvider": CustomEvent<AnnouncedProvider | undefined>;
  }
}

const UNKNOWN_CHAIN = 4902;
type Additions = Readonly<Record<string, NetworkAddition>>;
/** Some wallets, such as MetaMask for phones, wrap the original error into an error of their own. */
type ProviderError = { code?: number; data?: ProviderError & { originalError?: ProviderError } } | null | undefined;
/** Time after which `window.ethereum` is listed if no wallet has announced itself by EIP-6963, milliseconds. */
const FALLBACK_MS = 1_000;
/** Poll interval and timeout for the receipt of an approval, milliseconds. */
const RECEIPT_POLL_MS = 1_500;
const RECEIPT_TIMEOUT_MS = 180_000;

/**
 * Finds wallets by EIP-6963 while the page is open, because some announce themselves late. When two wallets announce the
 * same identifier, one impersonates the other: neither is listed. `window.ethereum`, which several extensions overwrite,
 * is listed only when no wallet announces itself.
 */
export const findEvmWallets: FindWallets = (chains, { additions, add, remove }) => {
  const known = new Map<string, Provider | undefined>();
  addEventListener("eip6963:announceProvider", (event) => {
    const { info, provider } = event.detail ?? {};
    if (typeof info?.uuid !== "string" || typeof provider?.request !== "function") return;
    const key = `evm:${info.uuid}`;
    if (known.has(key)) {
      if (known.get(key) === provider) return;
      known.set(key, undefined);
      remove(key);
      return;
    }
    known.set(key, provider);
    remove("evm:window");
    add(toWallet(provider, { chains, additions }, { key, name: safeName(info.name), icon: safeIcon(info.icon) }));
  });
  dispatchEvent(new Event("eip6963:requestProvider"));
  setTimeout(() => {
    const { ethereum } = window;
    if (known.size === 0 && typeof ethereum?.request === "function")
      add(toWallet(ethereum, { chains, additions }, { key: "evm:window", name: "Ethereum", icon: undefined }));
  }, FALLBACK_MS);
};

const isUnknownChain = (error: ProviderError): boolean =>
  [error?.code, error?.data?.code, error?.data?.originalError?.code].includes(UNKNOWN_CHAIN);

function toWallet(
  provider: Provider,
  { chains, additions }: { chains: readonly string[]; additions: Additions },
  known: Pick<Wallet, "key" | "name" | "icon">,
): Wallet {
  const call = <T>(method: string, params: unknown[] = []): Promise<T> => provider.request<T>({ method, params });
  const isOn = async (chain: string): Promise<boolean> =>
    Number(await call("eth_chainId")) === Number(chain.slice("eip155:".length));
  /** Returns false when the wallet does not know the network. True does not mean that the wallet has switched. */
  const requestSwitch = (chainId: string): Promise<boolean> =>
    call("wallet_switchEthereumChain", [{ chainId }]).then(
      () => true,
      (error: ProviderError) => {
        if (isUnknownChain(error)) return false;
        throw error;
      },
    );
  return {
    ...known,
    chains,
    async connect() {
      const accounts = await call<string[]>("eth_requestAccounts");
      // The first account is the selected one. The API lists options for 500 accounts at most.
      const maxAccounts = Math.max(1, Math.floor(500 / chains.length));
      return accounts.slice(0, maxAccounts).flatMap((account) => chains.map((chain) => `${chain}:${account}`));
    },
    async switchTo(chain, onPrompt) {
      if (await isOn(chain)) return;
      onPrompt();
      const chainId = `0x${Number(chain.slice("eip155:".length)).toString(16)}`;
      const addition = additions[chain];
      if (!(await requestSwitch(chainId)) && addition) {
        await call("wallet_addEthereumChain", [{ chainId, ...addition }]);
        // Some wallets switch to a network when they add it.
        if (!(await isOn(chain))) await requestSwitch(chainId);
      }
      // Some wallets report no error when their owner rejects the switch.
      if (!(await isOn(chain))) throw new WrongNetwork(chain);
    },
    async hasAccount(account) {
      const address = account.split(":")[2]?.toLowerCase();
      return (await call<string[]>("eth_accounts")).some((account) => account.toLowerCase() === address);
    },
    execute: async ({ method, params }) => String(await call(method, params)),
    async awaitReceipt(hash) {
      const deadline = performance.now() + RECEIPT_TIMEOUT_MS;
      while (performance.now() < deadline) {
        const receipt = await call<{ status?: string } | null>("eth_getTransactionReceipt", [hash]).catch(() => null);
        if (receipt) {
          if (receipt.status === "0x0") throw new Error("the transaction failed");
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, RECEIPT_POLL_MS));
      }
      throw new Error("the transaction is not in a block");
    },
  };
}
