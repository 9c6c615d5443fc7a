import type { BrowserContext } from "playwright-core";
import type { PrivateKeyAccount } from "viem";
import type { TestChain } from "../support/evm-chain.ts";

export type WalletPlan = {
  name: string;
  account: PrivateKeyAccount;
  /** The initial chain id; the local chain when unset. */
  chainId?: number;
  /** Set when it does not know the local chain until it is added: reports that by the code, or wrapped in an error. */
  lacks?: "by code" | "wrapped";
  /** Receives the networks that the page asked it to add. */
  added?: unknown[];
  /** How many network switches its owner cancels; wallets report no error for that. */
  cancels?: number;
  /** The EIP-1193 code for each request of a method; `undefined` accepts the request. */
  refuse?: Record<string, (number | undefined)[]>;
  /** The methods that it performs but answers with an error. */
  fails?: string[];
  /** Its response to a method waits for this promise. */
  waits?: Record<string, Promise<unknown>>;
  /** What its owner does right after a method: switches to another network or account. */
  after?: Record<string, (wallet: { switchTo: (chainId: number) => void }) => void>;
  /** The delay of its announcement, milliseconds. */
  lateMs?: number;
  icon?: string;
  uuid?: string;
};

const notThere = { code: 4902, message: "Unrecognized chain ID" };
const unknownChain = {
  "by code": notThere,
  // MetaMask for phones wraps the error like this.
  wrapped: { code: -32_603, message: "Internal JSON-RPC error", data: { originalError: notThere } },
};

const blank = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'/>";

/**
 * Installs EIP-6963 wallets in every page of a context, and a `window.ethereum` that no test uses. They hold real keys
 * and send to the real chain. Returns the list of their calls, in order.
 */
export async function installWallets(context: BrowserContext, chain: TestChain, plans: WalletPlan[]) {
  const calls: { wallet: string; method: string }[] = [];
  const local = await chain.client.getChainId();
  const on = new Map(plans.map(({ name, chainId = local }) => [name, chainId]));
  const known = new Map(plans.map((plan) => [plan.name, plan]));

  await context.exposeFunction("askWallet", async (name: string, method: string, params: unknown[]) => {
    calls.push({ wallet: name, method });
    const plan = known.get(name);
    const code = plan?.refuse?.[method]?.shift();
    if (code !== undefined) return { error: { code, message: "no" } };
    if (!plan) return { error: { code: 4_100, message: "this wallet must not be used" } };
    if (method === "wallet_switchEthereumChain" && plan.lacks) return { error: unknownChain[plan.lacks] };
    await plan.waits?.[method];
    const result = await perform(plan, method, params);
    plan.after?.[method]?.({ switchTo: (chainId) => on.set(name, chainId) });
    return plan.fails?.includes(method) ? { error: { code: -32_603, message: "Request timed out" } } : { result };
  });
  async function perform(plan: WalletPlan, method: string, params: unknown[]): Promise<unknown> {
    const { name, account } = plan;
    switch (method) {
      case "eth_requestAccounts":
      case "eth_accounts":
        return [account.address];
      case "eth_chainId":
        return `0x${(on.get(name) ?? local).toString(16)}`;
      case "wallet_addEthereumChain":
        delete plan.lacks;
        plan.added?.push(params[0]);
        return null;
      case "wallet_switchEthereumChain":
        if (plan.cancels) {
          plan.cancels -= 1;
          return null;
        }
        on.set(name, Number((params[0] as { chainId: string }).chainId));
        return null;
      case "eth_signTypedData_v4": {
        const { types, ...rest } = JSON.parse(params[1] as string);
        const { EIP712Domain: _, ...own } = types;
        return account.signTypedData({ ...rest, types: own });
      }
      case "eth_sendTransaction": {
        const { to, data, value, chainId } = params[0] as Record<"to" | "data" | "chainId", `0x${string}`> & {
          value: string;
        };
        // Wallets refuse a transaction for a network other than their current one.
        if (Number(chainId) !== on.get(name)) throw new Error("the transaction is for another network");
        return chain.client.sendTransaction({ account, to, data, value: BigInt(value), chain: null });
      }
      default:
        return chain.client.request({ method, params } as never);
    }
  }

  await context.addInitScript(
    ({ list, hostile }) => {
      type Answer = { result?: unknown; error?: { code: number; message: string; data?: object } };
      const ask = (window as unknown as { askWallet: (...args: unknown[]) => Promise<Answer> }).askWallet;
      const provide = (name: string) => ({
        async request({ method, params = [] }: { method: string; params?: unknown[] }) {
          const { result, error } = await ask(name, method, params);
          if (error) throw Object.assign(new Error(error.message), { code: error.code, data: error.data });
          return result;
        },
      });
      Object.assign(window, { ethereum: provide(hostile) });
      for (const { name, uuid, icon, lateMs } of list) {
        const detail = Object.freeze({ info: { name, uuid, icon, rdns: "test.wallet" }, provider: provide(name) });
        const announce = () => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
        if (lateMs) setTimeout(announce, lateMs);
        else addEventListener("eip6963:requestProvider", announce);
      }
    },
    {
      hostile: "Hostile",
      list: plans.map(({ name, uuid = `uuid-${name}`, icon = blank, lateMs = 0 }) => ({ name, uuid, icon, lateMs })),
    },
  );
  return calls;
}
