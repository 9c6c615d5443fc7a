import type { NetworkAddition } from "../script-data.ts";
import { safeIcon, safeName, type Wallet, WrongNetwork } from "./wallets.ts";

type Provider = { request: (call: { method: string; params?: unknown[] }) => Promise<unknown> };
type Announced = { info: { uuid: string; name: string; icon?: string }; provider: Provider };

const UNKNOWN_CHAIN = 4902;
type Additions = Readonly<Record<string, NetworkAddition>>;
/** Some wallets, MetaMask's for phones among them, wrap what went wrong into an error of their own. */
type Failure = { code?: number; data?: Failure & { originalError?: Failure } } | null | undefined;
/** A wallet without EIP-6963 is offered when none with it has shown up by then, milliseconds. */
const LATE_MS = 1_000;
/** An approval is looked for so often, and so long, milliseconds. */
const RECEIPT_EVERY_MS = 1_500;
const RECEIPT_WITHIN_MS = 180_000;

/**
 * Finds wallets by EIP-6963, for as long as the page lives: some come late. Two that use one identity are an attempt to
 * stand for each other: neither is offered. `window.ethereum`, which extensions fight over, only when nobody announces.
 * @param chains CAIP-2 of our networks of this family
 * @param additions those of them that wallets may be asked to add
 * @param add tells of a wallet, `remove` takes one back
 */
export function findEvmWallets(
  chains: readonly string[],
  additions: Additions,
  { add, remove }: { add: (wallet: Wallet) => void; remove: (key: string) => void },
): void {
  const known = new Map<string, Provider | undefined>();
  addEventListener("eip6963:announceProvider", (event) => {
    const { info, provider } = (event as CustomEvent<Announced>).detail ?? {};
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
    const { ethereum } = window as Window & { ethereum?: Provider };
    if (known.size === 0 && typeof ethereum?.request === "function")
      add(toWallet(ethereum, { chains, additions }, { key: "evm:window", name: "Ethereum", icon: undefined }));
  }, LATE_MS);
}

const doesNotKnow = (error: Failure): boolean =>
  [error?.code, error?.data?.code, error?.data?.originalError?.code].includes(UNKNOWN_CHAIN);

function toWallet(
  provider: Provider,
  { chains, additions }: { chains: readonly string[]; additions: Additions },
  known: Pick<Wallet, "key" | "name" | "icon">,
): Wallet {
  const ask = (method: string, params: unknown[] = []): Promise<unknown> => provider.request({ method, params });
  const isOn = async (chain: string): Promise<boolean> =>
    Number(await ask("eth_chainId")) === Number(chain.slice("eip155:".length));
  /** False when the wallet does not know the network; true is no promise that it has changed. */
  const turn = (chainId: string): Promise<boolean> =>
    ask("wallet_switchEthereumChain", [{ chainId }]).then(
      () => true,
      (error: Failure) => {
        if (doesNotKnow(error)) return false;
        throw error;
      },
    );
  return {
    ...known,
    async connect() {
      const accounts = (await ask("eth_requestAccounts")) as string[];
      // The first is the one its owner has chosen; fifty accounts are all that options are listed for.
      const most = Math.max(1, Math.floor(50 / chains.length));
      return accounts.slice(0, most).flatMap((account) => chains.map((chain) => `${chain}:${account}`));
    },
    async turnTo(chain, tell) {
      if (await isOn(chain)) return;
      tell();
      const chainId = `0x${Number(chain.slice("eip155:".length)).toString(16)}`;
      const addition = additions[chain];
      if (!(await turn(chainId)) && addition) {
        await ask("wallet_addEthereumChain", [{ chainId, ...addition }]);
        // Some have changed to it by adding it.
        if (!(await isOn(chain))) await turn(chainId);
      }
      // Who cancels the change after the addition tells of no error.
      if (!(await isOn(chain))) throw new WrongNetwork(chain);
    },
    async holds(account) {
      const address = account.split(":")[2]?.toLowerCase();
      return ((await ask("eth_accounts")) as string[]).some((one) => one.toLowerCase() === address);
    },
    perform: async ({ method, params }) => String(await ask(method, params)),
    async settle(hash) {
      const until = performance.now() + RECEIPT_WITHIN_MS;
      while (performance.now() < until) {
        const receipt = (await ask("eth_getTransactionReceipt", [hash]).catch(() => null)) as {
          status?: string;
        } | null;
        if (receipt) {
          if (receipt.status === "0x0") throw new Error("the transaction failed");
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, RECEIPT_EVERY_MS));
      }
      throw new Error("the transaction is in no block");
    },
  };
}
