import type { News } from "../script-data.ts";
import { findEvmWallets } from "./evm.ts";
import { button, Refused } from "./page.ts";
import * as panel from "./panel.ts";
import { findSolanaWallets } from "./solana.ts";
import { apply, onChange } from "./state.ts";
import { ask, data, words } from "./told.ts";
import { type Action, type Wallet, type WalletRpc, WrongNetwork } from "./wallets.ts";

type Amount = { value: string; display: { assetSymbol: string; decimals: number; networkName?: string } };
type Option = { id: string; account: string; amount: Amount; actions: Action[]; collectUrl: string | null };
type Result = { type: "walletRpc"; data: [string] };

const DECLINED = 4001;
const ANOTHER_OPEN = -32002;

const networkName = (chain: string): string => new Map(data.networks).get(chain) ?? chain;
const chainOf = (account: string): string => account.split(":", 2).join(":");

const wallets = new Map<string, Wallet>();
/** Raised when one begins and when one ends, so that an attempt that comes back late changes nothing. */
let attempt = 0;

/** Paying in the page with a wallet of this browser. */
export function startPaying(): void {
  const offerAll = (): void => panel.offer(wallets.values(), (wallet) => void pay(wallet));
  const add = (wallet: Wallet): void => {
    wallets.set(wallet.key, wallet);
    offerAll();
  };
  const remove = (key: string): void => {
    if (wallets.delete(key)) offerAll();
  };
  onChange(({ status }) => {
    if (status !== "requires_action") attempt += 1;
  });
  const ours = (family: string): string[] =>
    data.networks.map(([chain]) => chain).filter((id) => id.startsWith(family));
  const [evm, solana] = [ours("eip155:"), ours("solana:")];
  if (evm.length > 0) findEvmWallets(evm, data.additions, { add, remove });
  if (solana.length > 0) findSolanaWallets(solana, add);
  panel.beginSearch();
}

/** Asks a wallet who it is, and us how it can pay. */
async function pay(wallet: Wallet): Promise<void> {
  attempt += 1;
  const mine = attempt;
  const isMine = (): boolean => mine === attempt;
  panel.asking(words("connecting", { wallet: wallet.name }));
  try {
    const accounts = await wallet.connect();
    if (!isMine()) return;
    panel.doing(words("loading"));
    const { options } = await ask<{ options: Option[] }>("/options", { json: { accounts } });
    if (!isMine()) return;
    if (options.length === 0) return giveBack(words("noOption"));
    const buttons = options.map((option) => {
      const { networkName: network = networkName(chainOf(option.account)) } = option.amount.display;
      const text = words("optionOn", { amount: write(option.amount), network });
      return button(text, () => void payWith(wallet, option, isMine), { kind: "main" });
    });
    panel.choose(words("choose"), ...buttons, otherWallet());
  } catch (error) {
    if (isMine()) giveBack(explain(error, wallet, data.networks[0]?.[0] ?? ""));
  }
}

/** Executes what an option asks for, step by step, and hands the results in. */
async function payWith(wallet: Wallet, option: Option, isMine: () => boolean): Promise<void> {
  if (option.collectUrl !== null) return askForData(option.collectUrl);
  const chain = chainOf(option.account);
  const results: Result[] = [];
  let sent = false;
  try {
    panel.doing(words("switching", { wallet: wallet.name, network: networkName(chain) }));
    await wallet.turnTo(chain);
    const actions = await resolve(option);
    for (const [index, { data: action }] of actions.entries()) {
      const place = { step: index + 1, steps: actions.length, wallet: wallet.name };
      panel.asking(words(actions.length === 1 ? "approve" : "approveStep", place));
      const result = await wallet.perform(action, option.account);
      results.push({ type: "walletRpc", data: [result] });
      const isSent = action.method === "eth_sendTransaction";
      // The last one that is sent is the payment itself; those before only allow it.
      sent = isSent && index === actions.length - 1;
      // What has become of the payment meanwhile is shown already; a signature is not handed in on top of it.
      if (!isMine() && !sent) return;
      if (!isSent || sent) continue;
      panel.doing(words("waitingStep", place));
      await wallet.settle(result);
    }
    panel.doing(words("handingIn"));
    apply(await handIn({ optionId: option.id, results }));
  } catch (error) {
    if (!isMine()) return;
    if (sent) panel.asking(words("sentUnclear"));
    else giveBack(explain(error, wallet, chain));
  }
}

function giveBack(text: string | undefined): void {
  attempt += 1;
  panel.giveBack(text);
}

const otherWallet = () => button(words("otherWallet"), () => giveBack(undefined));

function askForData(url: string): void {
  const go = button(words("giveData"), () => location.assign(`${url}?${data.dataQuery}`), { kind: "main" });
  panel.choose(words("needsData"), go, otherWallet());
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
