import { namespaceOf } from "../../../runtime/caip-namespace.ts";
import type { ScriptText, StatusPayload } from "../pages/script-data.ts";
import { ApiError, button, byId } from "./dom.ts";
import { callApi, data, localize } from "./page-data.ts";
import { apply, onChange, showPaymentSection, showUnpayable, status } from "./page-state.ts";
import { findSent, forgetSent, keepSent, onOtherTab, type Result, type Sent } from "./sent-transaction.ts";
import { isTransientError, Reverted, submitConfirm } from "./submit-confirm.ts";
import { walletFinders } from "./wallet-families.ts";
import { type Action, type Wallet, type WalletRpc, WrongAccount, WrongNetwork } from "./wallet-interface.ts";
import * as panel from "./wallet-panel.ts";

type Amount = { value: string; display: { assetSymbol: string; decimals: number; networkName?: string } };
type Option = { id: string; account: string; amount: Amount; actions: Action[]; collectUrl: string | null };
/** `unpayable` is set when no wallet can pay: it shows what became of the buyer's money. */
type ListedOptions = { options: Option[]; unpayable?: StatusPayload["money"] };

/** EIP-1193 and JSON-RPC error codes: the owner rejected the request; another request is still open. */
const DECLINED = 4001;
const REQUEST_PENDING = -32002;

const networkName = (chain: string): string => new Map(data.networks).get(chain) ?? chain;
const chainOf = (account: string): string => account.split(":", 2).join(":");

const wallets = new Map<string, Wallet>();
/**
 * Number of the current attempt. It grows when an attempt begins or ends, so that a late result of an older one has no
 * effect.
 */
let attempt = 0;

/** Lists the wallets of this browser and lets the buyer pay with one of them. */
export function startPaying(): void {
  const listWallets = (): void => panel.showWallets(wallets.values(), labelFor, (wallet) => void pay(wallet));
  const add = (wallet: Wallet): void => {
    wallets.set(wallet.key, wallet);
    listWallets();
  };
  const remove = (key: string): void => {
    if (wallets.delete(key)) listWallets();
  };
  onChange(({ status }) => {
    if (status === "requires_action") return;
    attempt += 1;
    forgetSent();
  });
  for (const [namespace, findWallets] of Object.entries(walletFinders)) {
    const chains = data.networks.map(([chain]) => chain).filter((chain) => namespaceOf(chain) === namespace);
    if (chains.length > 0) findWallets(chains, { additions: data.additions, add, remove });
  }
  panel.startSearchTimeout();
  onOtherTab(resume);
  resume();
}

/**
 * Resumes a transaction that was sent before this page was opened or in another tab. If there is none, the buyer may
 * pay.
 */
function resume(): void {
  if (status() !== "requires_action") forgetSent();
  const sent = findSent();
  if (!sent) {
    if (panel.isUnderway()) reset(undefined);
    return;
  }
  attempt += 1;
  const own = attempt;
  showPaymentSection();
  const { optionId, results } = sent;
  if (results) {
    panel.showUnderway(localize("sentUnclear"));
    void track({ optionId, results }, () => own === attempt);
  } else showUncertain();
}

/** Submits the transaction that the buyer sent and waits for the result, which may take minutes. */
async function track(sent: Required<Sent>, isMine: () => boolean): Promise<void> {
  const onOpen = () => panel.showUnderway(localize("sentUnclear"));
  try {
    apply(await submitConfirm({ optionId: sent.optionId, results: sent.results }, { isMine, onOpen }));
  } catch (error) {
    if (!isMine()) return;
    if (error instanceof Reverted) return retry(localize("refused"));
    // A refused transaction may still get into a block. Only the buyer can see that the wallet has dropped it.
    panel.showUnderway(localize("sentUnclear"), ...(isTransientError(error) ? [] : [nothingSentButton()]));
  }
}

/** Warns that the wallet may have sent the money in a transaction that the page does not know. */
function showUncertain(): void {
  byId<HTMLDetailsElement>("facts").open = true;
  panel.showUncertain(localize("moneyUnclear"), nothingSentButton());
}

const nothingSentButton = () => button(localize("nothingSent"), () => retry(undefined));

/** Lets the buyer pay again: nothing is under way. */
function retry(text: string | undefined): void {
  forgetSent();
  // The server may list networks now.
  if (data.networks.length === 0) location.reload();
  else reset(text);
}

/** Returns the wallet's name, with its networks when the same name is listed for both chain families. */
function labelFor({ name, chains }: Wallet): string {
  if ([...wallets.values()].filter((other) => other.name === name).length === 1) return name;
  return `${name} (${chains.map(networkName).join(", ")})`;
}

/** Connects a wallet and lists the options of its accounts. */
async function pay(wallet: Wallet): Promise<void> {
  attempt += 1;
  const own = attempt;
  const isMine = (): boolean => own === attempt;
  panel.promptBuyer(localize("connecting", { wallet: wallet.name }), chooseOtherWalletButton());
  try {
    const accounts = await wallet.connect();
    if (!isMine()) return;
    panel.showProgress(localize("loading"), chooseOtherWalletButton());
    const { options, unpayable } = await callApi<ListedOptions>("/options", { json: { accounts } });
    if (!isMine()) return;
    if (unpayable) return showUnpayable(unpayable);
    if (options.length === 0) return reset(localize("noOption"));
    const buttons = options.map((option) => {
      const { networkName: network = networkName(chainOf(option.account)) } = option.amount.display;
      const text = localize("optionOn", { amount: formatAmount(option.amount), network });
      return button(text, () => void payWith(wallet, option, isMine), { kind: "main" });
    });
    panel.showChoices(localize("choose"), ...buttons, chooseOtherWalletButton());
  } catch (error) {
    if (isMine()) showFailure(error, wallet, data.networks[0]?.[0] ?? "", "nothing");
  }
}

/** What the buyer may have committed when an attempt fails: nothing, perhaps the money, or a signature. */
type Committed = "nothing" | "perhaps" | "signature";

/** Executes the actions of an option one by one and submits the results. */
async function payWith(wallet: Wallet, option: Option, isMine: () => boolean): Promise<void> {
  if (option.collectUrl !== null) return askForData(option.collectUrl);
  const chain = chainOf(option.account);
  const { id: optionId } = option;
  const results: Result[] = [];
  let committed: Committed = "nothing";
  try {
    panel.showProgress(localize("loading"), chooseOtherWalletButton());
    const switchPrompt = localize("switching", { wallet: wallet.name, network: networkName(chain) });
    const actions = await resolve(option);
    for (const [index, { data: action }] of actions.entries()) {
      // The owner may have switched to another network or account since the last step.
      await wallet.switchTo(chain, () => isMine() && panel.promptBuyer(switchPrompt, chooseOtherWalletButton()));
      if (!(await wallet.hasAccount(option.account))) throw new WrongAccount();
      // Another attempt or the payment's end has replaced this attempt: sign and submit nothing more.
      if (!isMine()) return;
      const place = { step: index + 1, steps: actions.length, wallet: wallet.name };
      const isSent = action.method === "eth_sendTransaction";
      // The last transaction is the payment itself; earlier ones only approve it.
      const pays = isSent && index === actions.length - 1;
      if (pays) {
        committed = "perhaps";
        keepSent({ optionId });
      }
      // While a payment may be under way, another wallet would pay a second time.
      panel.promptBuyer(
        localize(actions.length === 1 ? "approve" : "approveStep", place),
        ...(pays ? [] : [chooseOtherWalletButton()]),
      );
      const result = await wallet.execute(action, option.account);
      results.push({ type: "walletRpc", data: [result] });
      if (pays) {
        keepSent({ optionId, results });
        panel.showProgress(localize("handingIn"));
        return await track({ optionId, results }, isMine);
      }
      if (!isSent) continue;
      panel.showProgress(localize("waitingStep", place));
      await wallet.awaitReceipt(result);
    }
    if (!isMine()) return;
    committed = "signature";
    panel.showProgress(localize("handingIn"));
    apply(await submitConfirm({ optionId, results }, { isMine }));
  } catch (error) {
    if (isMine()) showFailure(error, wallet, chain, committed);
  }
}

function reset(text: string | undefined): void {
  attempt += 1;
  panel.reset(text);
}

const chooseOtherWalletButton = () => button(localize("otherWallet"), () => reset(undefined));

function askForData(url: string): void {
  const toDataPage = button(localize("giveData"), () => location.assign(`${url}?${data.dataQuery}`), { kind: "main" });
  panel.showChoices(localize("needsData"), toDataPage, chooseOtherWalletButton());
}

/** Returns the wallet actions of an option; fetches those that the server has to build first. */
async function resolve({ id, actions }: Option): Promise<WalletRpc[]> {
  const lists = [];
  for (const action of actions)
    lists.push(
      action.type === "walletRpc"
        ? [action]
        : (await callApi<{ actions: WalletRpc[] }>("/fetch", { json: { optionId: id, data: action.data.data } }))
            .actions,
    );
  return lists.flat();
}

/** Shows an error. When its text tells the buyer not to pay again, the page shows no way to pay. */
function showFailure(error: unknown, wallet: Wallet, chain: string, committed: Committed): void {
  const { code } = readWalletError(error);
  if (committed === "perhaps") {
    // A wallet that reports an error may have sent the transaction.
    if (code !== DECLINED && code !== REQUEST_PENDING) {
      showUncertain();
      return;
    }
    forgetSent();
  }
  const name = explain(error, committed);
  const text = localize(name, { wallet: wallet.name, network: networkName(chain) });
  const recheckButton = () => button(localize("recheck"), () => location.reload());
  if (name === "serverErrorText" || name === "alreadyPaying") panel.showUnderway(text, recheckButton());
  else reset(text);
}

/** Returns the text for an error. Only texts for errors after which nothing can have been charged say so. */
function explain(error: unknown, committed: Committed): ScriptText {
  if (committed === "signature" && isTransientError(error)) return "serverErrorText";
  if (error instanceof ApiError) return isTransientError(error) ? "notReached" : (textsByCode[error.code] ?? "refused");
  if (error instanceof WrongNetwork) return "wrongNetwork";
  if (error instanceof WrongAccount) return "wrongAccount";
  const { code, message } = readWalletError(error);
  if (code === DECLINED) return "declined";
  if (code === REQUEST_PENDING) return "answerOpen";
  if (code !== undefined) return "walletFailed";
  if (/reject|declin|denied|cancel/i.test(String(message))) return "declined";
  return error instanceof TypeError ? "notReached" : "walletFailed";
}

/** Wallets throw objects that need not be an Error. */
const readWalletError = (error: unknown): { code?: unknown; message?: unknown } =>
  typeof error === "object" && error !== null ? error : {};

const textsByCode: Readonly<Record<string, ScriptText>> = {
  invalid_state: "alreadyPaying",
  quote_expired: "tooSlow",
  payment_expired: "expiredTitle",
  sanctioned_user: "notServed",
};

/** Returns an amount in the buyer's language, without rounding. */
function formatAmount({ value, display }: Amount): string {
  const digits = value.padStart(display.decimals + 1, "0");
  const cut = digits.length - display.decimals;
  const decimal = `${digits.slice(0, cut)}.${digits.slice(cut)}`;
  const format = { minimumFractionDigits: Math.min(2, display.decimals), maximumFractionDigits: 20 };
  return `${new Intl.NumberFormat(data.language, format).format(decimal as Intl.StringNumericLiteral)} ${display.assetSymbol}`;
}
