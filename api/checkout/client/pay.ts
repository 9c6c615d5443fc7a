import type { News, ScriptText } from "../script-data.ts";
import { findEvmWallets } from "./evm.ts";
import { handIn, isPassing, Reverted } from "./hand-in.ts";
import { button, byId, Refused } from "./page.ts";
import * as panel from "./panel.ts";
import { findSent, forgetSent, keepSent, onOtherTab, type Result, type Sent } from "./sent.ts";
import { findSolanaWallets } from "./solana.ts";
import { apply, onChange, showUnpayable, showWays, status } from "./state.ts";
import { ask, data, words } from "./told.ts";
import { type Action, type Wallet, type WalletRpc, WrongAccount, WrongNetwork } from "./wallets.ts";

type Amount = { value: string; display: { assetSymbol: string; decimals: number; networkName?: string } };
type Option = { id: string; account: string; amount: Amount; actions: Action[]; collectUrl: string | null };
/** `unpayable` when no wallet at all could pay: what became of the buyer's money then. */
type Listed = { options: Option[]; unpayable?: News["money"] };

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
    if (status === "requires_action") return;
    attempt += 1;
    forgetSent();
  });
  const ours = (family: string): string[] =>
    data.networks.map(([chain]) => chain).filter((id) => id.startsWith(family));
  const [evm, solana] = [ours("eip155:"), ours("solana:")];
  if (evm.length > 0) findEvmWallets(evm, data.additions, { add, remove });
  if (solana.length > 0) findSolanaWallets(solana, add);
  panel.beginSearch();
  onOtherTab(resume);
  resume();
}

/** Goes on with what was sent before this page was opened, or in another tab; with nothing sent, the buyer may pay. */
function resume(): void {
  if (status() !== "requires_action") forgetSent();
  const sent = findSent();
  if (!sent) {
    if (panel.isUnderway()) giveBack(undefined);
    return;
  }
  attempt += 1;
  const mine = attempt;
  showWays();
  if (sent.results) {
    panel.follow(words("sentUnclear"));
    void track(sent as Required<Sent>, () => mine === attempt);
  } else warn();
}

/** Hands in what the buyer has sent, and follows it: it may wait for its block for minutes. */
async function track(sent: Required<Sent>, isMine: () => boolean): Promise<void> {
  const onOpen = () => panel.follow(words("sentUnclear"));
  try {
    apply(await handIn({ optionId: sent.optionId, results: sent.results }, { isMine, onOpen }));
  } catch (error) {
    if (!isMine()) return;
    if (error instanceof Reverted) return retry(words("refused"));
    // Refused, it may come into a block all the same. Only the buyer can see that the wallet has dropped it.
    panel.follow(words("sentUnclear"), ...(isPassing(error) ? [] : [nothingSent()]));
  }
}

/** The wallet may have sent the money, and nobody knows its transaction. */
function warn(): void {
  byId<HTMLDetailsElement>("facts").open = true;
  panel.warn(words("moneyUnclear"), nothingSent());
}

const nothingSent = () => button(words("nothingSent"), () => retry(undefined));

/** Nothing is under way: the buyer may pay again. */
function retry(text: string | undefined): void {
  forgetSent();
  // Where there was nothing to pay with, there may be now.
  if (data.networks.length === 0) location.reload();
  else giveBack(text);
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
    const { options, unpayable } = await ask<Listed>("/options", { json: { accounts } });
    if (!isMine()) return;
    if (unpayable) return showUnpayable(unpayable);
    if (options.length === 0) return giveBack(words("noOption"));
    const buttons = options.map((option) => {
      const { networkName: network = networkName(chainOf(option.account)) } = option.amount.display;
      const text = words("optionOn", { amount: write(option.amount), network });
      return button(text, () => void payWith(wallet, option, isMine), { kind: "main" });
    });
    panel.choose(words("choose"), ...buttons, otherWallet());
  } catch (error) {
    if (isMine()) complain(error, wallet, data.networks[0]?.[0] ?? "", "nothing");
  }
}

/** What a buyer who is interrupted may have given away: nothing yet, perhaps the money, or a signature. */
type Given = "nothing" | "perhaps" | "signature";

/** Executes what an option asks for, step by step, and hands the results in. */
async function payWith(wallet: Wallet, option: Option, isMine: () => boolean): Promise<void> {
  if (option.collectUrl !== null) return askForData(option.collectUrl);
  const chain = chainOf(option.account);
  const { id: optionId } = option;
  const results: Result[] = [];
  let given: Given = "nothing";
  try {
    panel.doing(words("loading"), otherWallet());
    const change = words("switching", { wallet: wallet.name, network: networkName(chain) });
    const actions = await resolve(option);
    for (const [index, { data: action }] of actions.entries()) {
      // Its owner may have turned to another network or account since the last step.
      await wallet.turnTo(chain, () => isMine() && panel.asking(change, otherWallet()));
      if (!(await wallet.holds(option.account))) throw new WrongAccount();
      // What has become of the payment meanwhile is shown already; nothing is signed or handed in on top of it.
      if (!isMine()) return;
      const place = { step: index + 1, steps: actions.length, wallet: wallet.name };
      const isSent = action.method === "eth_sendTransaction";
      // The last one that is sent is the payment itself; those before only allow it.
      const pays = isSent && index === actions.length - 1;
      if (pays) {
        given = "perhaps";
        keepSent({ optionId });
      }
      // Beside a payment that may be under way another wallet would pay a second time.
      panel.asking(words(actions.length === 1 ? "approve" : "approveStep", place), ...(pays ? [] : [otherWallet()]));
      const result = await wallet.perform(action, option.account);
      results.push({ type: "walletRpc", data: [result] });
      if (pays) {
        keepSent({ optionId, results });
        panel.doing(words("handingIn"));
        return await track({ optionId, results }, isMine);
      }
      if (!isSent) continue;
      panel.doing(words("waitingStep", place));
      await wallet.settle(result);
    }
    if (!isMine()) return;
    given = "signature";
    panel.doing(words("handingIn"));
    apply(await handIn({ optionId, results }, { isMine }));
  } catch (error) {
    if (isMine()) complain(error, wallet, chain, given);
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

/** Says what went wrong. Where the buyer is told not to pay again, no way to pay is left beside it. */
function complain(error: unknown, wallet: Wallet, chain: string, given: Given): void {
  const { code } = (error ?? {}) as { code?: number };
  if (given === "perhaps") {
    // A wallet that fails may have sent it all the same.
    if (code !== DECLINED && code !== ANOTHER_OPEN) {
      warn();
      return;
    }
    forgetSent();
  }
  const name = explain(error, given);
  const text = words(name, { wallet: wallet.name, network: networkName(chain) });
  const again = () => button(words("checkAgain"), () => location.reload());
  if (name === "troubleText" || name === "alreadyPaying") panel.follow(text, again());
  else giveBack(text);
}

/** What went wrong: that nothing was charged is said only where that is certain. */
function explain(error: unknown, given: Given): ScriptText {
  if (given === "signature" && isPassing(error)) return "troubleText";
  if (error instanceof Refused) return isPassing(error) ? "notReached" : (refusals[error.code] ?? "refused");
  if (error instanceof WrongNetwork) return "wrongNetwork";
  if (error instanceof WrongAccount) return "wrongAccount";
  const { code, message } = (error ?? {}) as { code?: number; message?: string };
  if (code === DECLINED) return "declined";
  if (code === ANOTHER_OPEN) return "answerOpen";
  if (code !== undefined) return "walletFailed";
  if (/reject|declin|denied|cancel/i.test(String(message))) return "declined";
  return error instanceof TypeError ? "notReached" : "walletFailed";
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
