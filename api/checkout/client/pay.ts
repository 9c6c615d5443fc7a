import type { News } from "../script-data.ts";
import { findEvmWallets } from "./evm.ts";
import { announce, button, byId, Refused, show } from "./page.ts";
import { findSolanaWallets } from "./solana.ts";
import { apply, onChange } from "./state.ts";
import { ask, data, words } from "./told.ts";
import { type Action, type Wallet, type WalletRpc, WrongNetwork } from "./wallets.ts";

type Amount = { value: string; display: { assetSymbol: string; decimals: number; networkName?: string } };
type Option = { id: string; account: string; amount: Amount; actions: Action[]; collectUrl: string | null };
type Result = { type: "walletRpc"; data: [string] };

/** No wallet has shown up by then, milliseconds; those that come later are offered all the same. */
const SEARCH_MS = 1_200;
const DECLINED = 4001;
const ANOTHER_OPEN = -32002;

const networkName = (chain: string): string => new Map(data.networks).get(chain) ?? chain;
const chainOf = (account: string): string => account.split(":", 2).join(":");

/** Paying in the page with a wallet of this browser. */
export function startPaying({ askNow }: { askNow: () => void }): void {
  const wallets = new Map<string, Wallet>();
  const [list, searching, step, choices, problem] = ["wallets", "searching", "step", "choices", "problem"].map((id) =>
    byId(id),
  ) as [HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement];
  /** Raised with every new attempt, so that an old one that comes back late changes nothing. */
  let attempt = 0;

  const offerWallets = (): void => {
    list.replaceChildren(
      ...[...wallets.values()].map((wallet) => {
        const item = document.createElement("li");
        const more = wallet.icon === undefined ? {} : { icon: wallet.icon };
        item.append(button(wallet.name, () => void pay(wallet), more));
        return item;
      }),
    );
    list.hidden = wallets.size === 0 || !choices.hidden || !step.hidden;
    if (wallets.size > 0) searching.hidden = true;
  };
  const doing = (text: string): void => {
    show(problem, undefined);
    show(step, text);
    choices.hidden = true;
    list.hidden = true;
    announce(text);
  };
  /** Back to the wallets, with what went wrong; nothing stays dead. */
  const giveBack = (text: string | undefined): void => {
    attempt += 1;
    show(step, undefined);
    choices.hidden = true;
    show(problem, text);
    offerWallets();
    list.querySelector("button")?.focus();
  };
  const choose = (text: string, ...buttons: HTMLElement[]): void => {
    show(step, text);
    choices.replaceChildren(
      ...buttons,
      button(words("otherWallet"), () => giveBack(undefined)),
    );
    choices.hidden = false;
    list.hidden = true;
    buttons[0]?.focus();
  };

  async function pay(wallet: Wallet): Promise<void> {
    attempt += 1;
    const mine = attempt;
    const isMine = (): boolean => mine === attempt;
    doing(words("connecting", { wallet: wallet.name }));
    try {
      const accounts = await wallet.connect();
      if (!isMine()) return;
      doing(words("loading"));
      const { options } = await ask<{ options: Option[] }>("/options", { json: { accounts } });
      if (!isMine()) return;
      if (options.length === 0) return giveBack(words("noOption"));
      choose(
        words("choose"),
        ...options.map((option) => {
          const { networkName: network = networkName(chainOf(option.account)) } = option.amount.display;
          const text = words("optionOn", { amount: write(option.amount), network });
          return button(text, () => void payWith(wallet, option, isMine), { kind: "main" });
        }),
      );
    } catch (error) {
      if (isMine()) giveBack(explain(error, wallet, data.networks[0]?.[0] ?? ""));
    }
  }

  async function payWith(wallet: Wallet, option: Option, isMine: () => boolean): Promise<void> {
    const chain = chainOf(option.account);
    if (option.collectUrl !== null) return askForData(option.collectUrl);
    let sent = false;
    try {
      doing(words("switching", { wallet: wallet.name, network: networkName(chain) }));
      await wallet.turnTo(chain);
      const actions = await resolve(option);
      const results: Result[] = [];
      for (const [index, { data: action }] of actions.entries()) {
        if (!isMine()) return;
        const place = { step: index + 1, steps: actions.length, wallet: wallet.name };
        doing(words(actions.length === 1 ? "approve" : "approveStep", place));
        const result = await wallet.perform(action, option.account);
        results.push({ type: "walletRpc", data: [result] });
        if (action.method !== "eth_sendTransaction") continue;
        // The last one that is sent is the payment itself; those before only allow it.
        sent = index === actions.length - 1;
        if (sent) continue;
        doing(words("waitingStep", place));
        await wallet.settle(result);
      }
      doing(words("handingIn"));
      apply(await handIn({ optionId: option.id, results }));
      askNow();
    } catch (error) {
      // What has become of the payment meanwhile is shown already.
      if (!isMine()) return;
      if (sent) doing(words("sentUnclear"));
      else giveBack(explain(error, wallet, chain));
    }
  }

  function askForData(url: string): void {
    const { shop = "" } = data.values;
    const target = new URL(url);
    target.searchParams.set("back", "1");
    target.searchParams.set("lang", data.language);
    choose(
      words("needsData", { shop }),
      button(words("giveData"), () => location.assign(target.href), { kind: "main" }),
    );
  }

  const add = (wallet: Wallet): void => {
    wallets.set(wallet.key, wallet);
    offerWallets();
  };
  const remove = (key: string): void => {
    if (wallets.delete(key)) offerWallets();
  };
  onChange(({ status }) => {
    if (status !== "requires_action") attempt += 1;
  });
  const ours = (family: string): string[] =>
    data.networks.map(([chain]) => chain).filter((id) => id.startsWith(family));
  const [evm, solana] = [ours("eip155:"), ours("solana:")];
  if (evm.length > 0) findEvmWallets(evm, { add, remove });
  if (solana.length > 0) findSolanaWallets(solana, add);
  setTimeout(() => {
    if (wallets.size === 0) searching.textContent = words("noWalletHere");
  }, SEARCH_MS);
}

/** The actions that a wallet executes: those that have to be built first are built now. */
async function resolve({ id, actions }: Option): Promise<WalletRpc[]> {
  const lists = [];
  for (const action of actions)
    lists.push(
      action.type === "walletRpc"
        ? [action]
        : (await ask<{ actions: WalletRpc[] }>("/fetch", { json: { optionId: id, data: action.data.data } })).actions,
    );
  return lists.flat();
}

/** The same confirm again is the same confirm: a lost answer costs a second, and never a second payment. */
async function handIn(confirm: { optionId: string; results: Result[] }): Promise<News> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask<News>("/confirm", { json: confirm });
    } catch (error) {
      const isPassing = !(error instanceof Refused) || error.status === 429 || error.status >= 500;
      if (!isPassing || tries === 30) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}

/** What went wrong, in words that say what became of the money. */
function explain(error: unknown, wallet: Wallet, chain: string): string {
  const at = { wallet: wallet.name, network: networkName(chain) };
  if (error instanceof WrongNetwork) return words("wrongNetwork", at);
  if (error instanceof Refused) {
    if (error.code === "invalid_state") return words("alreadyPaying");
    if (error.code === "quote_expired" || error.code === "payment_expired") return words("tooSlow");
    if (error.code === "sanctioned_user") return words("notServed");
    return words(error.status >= 500 || error.status === 429 ? "notReached" : "refused");
  }
  const code = (error as { code?: number } | null)?.code;
  if (code === DECLINED || /reject|declin|denied|cancel/i.test(String((error as Error | null)?.message)))
    return words("declined", at);
  if (code === ANOTHER_OPEN) return words("answerOpen", at);
  return words(error instanceof TypeError && code === undefined ? "notReached" : "walletFailed", at);
}

/** An amount as the buyer's language writes it, exactly. */
function write({ value, display }: Amount): string {
  const digits = value.padStart(display.decimals + 1, "0");
  const cut = digits.length - display.decimals;
  const decimal = `${digits.slice(0, cut)}.${digits.slice(cut)}`;
  const format = { minimumFractionDigits: Math.min(2, display.decimals), maximumFractionDigits: 20 };
  return `${new Intl.NumberFormat(data.language, format).format(decimal as unknown as number)} ${display.assetSymbol}`;
}
