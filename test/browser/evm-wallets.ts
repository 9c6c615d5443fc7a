import type { BrowserContext } from "playwright-core";
import type { PrivateKeyAccount } from "viem";
import type { TestChain } from "../support/chain.ts";

export type WalletPlan = {
  name: string;
  account: PrivateKeyAccount;
  /** The chain it is on at first, a number; the local one when unset. */
  chainId?: number;
  /** It does not know the local chain before it is told of it, and says so by the code, or wraps that into an error. */
  lacks?: "by code" | "wrapped";
  /** What it has been told to add. */
  added?: unknown[];
  /** Its owner cancels so many changes of the network, of which wallets tell no error. */
  cancels?: number;
  /** What it refuses, by method: an EIP-1193 code for each time it is asked, `undefined` lets it pass. */
  refuse?: Record<string, (number | undefined)[]>;
  /** What it does, and then tells of an error all the same: methods. */
  fails?: string[];
  /** It answers no sooner than this, by method. */
  waits?: Record<string, Promise<unknown>>;
  /** Its owner does something in it as soon as it has done this, by method: turns to another network or account. */
  after?: Record<string, (wallet: { turnTo: (chainId: number) => void }) => void>;
  /** Announces itself so much later, milliseconds. */
  lateMs?: number;
  icon?: string;
  uuid?: string;
};

const notThere = { code: 4902, message: "Unrecognized chain ID" };
const unknownChain = {
  "by code": notThere,
  // As MetaMask for phones has it.
  wrapped: { code: -32_603, message: "Internal JSON-RPC error", data: { originalError: notThere } },
};

const blank = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'/>";

/**
 * Puts EIP-6963 wallets into every page of a context, and a `window.ethereum` that nobody has chosen. They hold real keys
 * and send to the real chain. Gives what each of them was asked, in order.
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
    if (!plan) return { error: { code: 4_100, message: "nobody has chosen this one" } };
    if (method === "wallet_switchEthereumChain" && plan.lacks) return { error: unknownChain[plan.lacks] };
    await plan.waits?.[method];
    const result = await perform(plan, method, params);
    plan.after?.[method]?.({ turnTo: (chainId) => on.set(name, chainId) });
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
        // As wallets do: what is for another network than theirs is refused.
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
