import type { News, ScriptText } from "../script-data.ts";
import { findEvmWallets } from "./evm.ts";
import { button, byId, Refused } from "./page.ts";
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
  const offerAll = (): void => panel.offer(wallets.values(), labelOf, (wallet) => void pay(wallet));
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

/** A wallet for both families of networks comes twice, under one name: then its networks are named too. */
function labelOf({ key, name }: Wallet): string {
  if ([...wallets.values()].filter((other) => other.name === name).length === 1) return name;
  const family = key.startsWith("solana:") ? "solana:" : "eip155:";
  return `${name} (${data.networks.flatMap(([chain, network]) => (chain.startsWith(family) ? [network] : [])).join(", ")})`;
}

/** Asks a wallet who it is, and us how it can pay. */
async function pay(wallet: Wallet): Promise<void> {
  attempt += 1;
  const mine = attempt;
  const isMine = (): boolean => mine === attempt;
  panel.asking(words("connecting", { wallet: wallet.name }), otherWallet());
  try {
    const accounts = await wallet.connect();
    if (!isMine()) return;
    panel.doing(words("loading"), otherWallet());
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
    if (isMine()) giveBack(explain(error, wallet, data.networks[0]?.[0] ?? "", "nothing"));
  }
}

/** What a buyer who is interrupted may have given away: nothing yet, perhaps his money, his money, or his signature. */
type Given = "nothing" | "perhaps" | "money" | "signature";

/** Executes what an option asks for, step by step, and hands the results in. */
async function payWith(wallet: Wallet, option: Option, isMine: () => boolean): Promise<void> {
  if (option.collectUrl !== null) return askForData(option.collectUrl);
  const chain = chainOf(option.account);
  const results: Result[] = [];
  let given: Given = "nothing";
  try {
    panel.doing(words("loading"), otherWallet());
    const change = words("switching", { wallet: wallet.name, network: networkName(chain) });
    await wallet.turnTo(chain, () => isMine() && panel.asking(change, otherWallet()));
    const actions = isMine() ? await resolve(option) : [];
    for (const [index, { data: action }] of actions.entries()) {
      // What has become of the payment meanwhile is shown already; nothing is signed or handed in on top of it.
      if (!isMine()) return;
      const place = { step: index + 1, steps: actions.length, wallet: wallet.name };
      const isSent = action.method === "eth_sendTransaction";
      // The last one that is sent is the payment itself; those before only allow it.
      const pays = isSent && index === actions.length - 1;
      if (pays) given = "perhaps";
      // Beside a payment that may be under way another wallet would pay a second time.
      panel.asking(words(actions.length === 1 ? "approve" : "approveStep", place), ...(pays ? [] : [otherWallet()]));
      const result = await wallet.perform(action, option.account);
      results.push({ type: "walletRpc", data: [result] });
      if (pays) given = "money";
      if (!isSent || pays) continue;
      panel.doing(words("waitingStep", place));
      await wallet.settle(result);
    }
    if (!isMine() && given === "nothing") return;
    if (given === "nothing") given = "signature";
    panel.doing(words("handingIn"));
    // What the buyer has sent may wait for its block for minutes, and the payment is payable meanwhile.
    const onOpen = () => given === "money" && panel.follow(words("sentUnclear"));
    apply(await handIn({ optionId: option.id, results }, { isMine, onOpen }));
  } catch (error) {
    if (!isMine()) return;
    if (given === "money") panel.follow(words("sentUnclear"));
    else giveBack(explain(error, wallet, chain, given));
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

/**
 * The same confirm again is the same confirm: a lost answer costs a second, and never a second payment. It is held until
 * the confirm is verified; asked again when that takes longer, for as long as the payment waits for this attempt.
 */
async function handIn(
  confirm: { optionId: string; results: Result[] },
  { isMine, onOpen }: { isMine: () => boolean; onOpen: () => void },
): Promise<News> {
  for (let failures = 0, open = false; ; ) {
    try {
      const news = await ask<News>("/confirm", { json: confirm });
      if (news.status !== "requires_action" || !isMine()) return news;
      if (!open) onOpen();
      open = true;
    } catch (error) {
      failures += 1;
      if (!isPassing(error) || failures === 30) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

/** Nobody has said no: a network or a server that is away, or busy. */
const isPassing = (error: unknown): boolean =>
  !(error instanceof Refused) || error.status === 429 || error.status >= 500;

/** What went wrong, in words that say what became of the money: that nothing was charged only where that is certain. */
function explain(error: unknown, wallet: Wallet, chain: string, given: Given): string {
  const at = { wallet: wallet.name, network: networkName(chain) };
  if (given === "signature" && isPassing(error)) return words("troubleText");
  if (error instanceof Refused) return words(isPassing(error) ? "notReached" : (refusals[error.code] ?? "refused"));
  if (error instanceof WrongNetwork) return words("wrongNetwork", at);
  const { code, message } = (error ?? {}) as { code?: number; message?: string };
  if (code === DECLINED) return words("declined", at);
  if (code === ANOTHER_OPEN) return words("answerOpen", at);
  // A wallet that fails may have sent it all the same.
  if (given === "perhaps") {
    panel.hideOffers();
    byId<HTMLDetailsElement>("facts").open = true;
    return words("moneyUnclear");
  }
  if (code !== undefined) return words("walletFailed", at);
  if (/reject|declin|denied|cancel/i.test(String(message))) return words("declined", at);
  return words(error instanceof TypeError ? "notReached" : "walletFailed", at);
}

const refusals: Readonly<Record<string, ScriptText>> = {
  invalid_state: "alreadyPaying",
  quote_expired: "tooSlow",
  payment_expired: "expiredTitle",
  sanctioned_user: "notServed",
};

/** An amount as the buyer's language writes it, exactly. */
function write({ value, display }: Amount): string {
  const digits = value.padStart(display.decimals + 1, "0");
  const cut = digits.length - display.decimals;
  const decimal = `${digits.slice(0, cut)}.${digits.slice(cut)}`;
  const format = { minimumFractionDigits: Math.min(2, display.decimals), maximumFractionDigits: 20 };
  return `${new Intl.NumberFormat(data.language, format).format(decimal as unknown as number)} ${display.assetSymbol}`;
}
