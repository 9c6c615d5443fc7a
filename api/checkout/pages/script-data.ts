/** The data that pages hold for their scripts. The scripts' own type check reads this file too. */

export type Status = "requires_action" | "processing" | "succeeded" | "failed" | "expired" | "cancelled";

/** The status of one payment: part of the page, and returned by its routes. */
export type StatusPayload = {
  status: Status;
  isFinal: boolean;
  /** Grows with every change. */
  version: number;
  money: "none" | "underway" | "moved" | "unclear";
  /** Until the deadline, milliseconds. */
  leftMs: number;
  /** The shop's address that the page returns to; null before the end, and when the merchant has set none. */
  returnUrl: string | null;
  txId: string | null;
  /** The transaction's page in a block explorer, if there is one. */
  txUrl: string | null;
};

/** Texts that appear only while the script runs. */
export const scriptTexts = [
  "searching",
  "noWalletHere",
  "copied",
  "copyFailed",
  "left120",
  "left60",
  "left20",
  "connecting",
  "loading",
  "choose",
  "optionOn",
  "otherWallet",
  "needsData",
  "giveData",
  "switching",
  "approve",
  "approveStep",
  "waitingStep",
  "handingIn",
  "declined",
  "answerOpen",
  "wrongNetwork",
  "wrongAccount",
  "noOption",
  "notServed",
  "walletFailed",
  "refused",
  "tooSlow",
  "notReached",
  "sentUnclear",
  "alreadyPaying",
  "nothingSent",
  "recheck",
  "processingTitle",
  "processingText",
  "mayClose",
  "succeededTitle",
  "failedTitle",
  "expiredTitle",
  "cancelledTitle",
  "moneyNone",
  "moneyUnclear",
  "serverErrorText",
  "leaving",
  "staying",
] as const;

export type ScriptText = (typeof scriptTexts)[number];

/** A network as in EIP-3085, without its `chainId`. */
export type NetworkAddition = {
  chainName: string;
  rpcUrls: string[];
  blockExplorerUrls?: string[];
  nativeCurrency: { name: string; symbol: string; decimals: 18 };
};

export type CheckoutData = StatusPayload & {
  /** Path of the payment's own routes. */
  base: string;
  language: string;
  /** Query of the data page's address: the same preferences, and the way back to this page. */
  dataQuery: string;
  /**
   * Time since the present state began, and the time in `processing` after which the page may be closed, milliseconds.
   */
  sinceMs: number;
  patienceMs: number;
  /** Values of the texts' placeholders. */
  values: Record<string, string>;
  titles: Record<Status | "unpayable", string>;
  /** CAIP-2 and name of each network that can pay. */
  networks: [string, string][];
  /** By CAIP-2: how a wallet adds a network that it does not know, where the operator has configured it. */
  additions: Record<string, NetworkAddition>;
  texts: Record<ScriptText, string>;
};

export type CollectText =
  | "errorName"
  | "errorDob"
  | "errorCountry"
  | "errorAddress"
  | "errorTos"
  | "errorSave"
  | "dataDone"
  | "dataEnded"
  | "send"
  | "sendingData";

export type CollectData = {
  stage: "open" | "given" | "ended";
  /** Path that the form is sent to. */
  action: string;
  optionId: string;
  /** The payment's page, for a buyer who came from there. */
  backUrl: string | null;
  /** Origins that may frame the page; a framing one of them is notified. */
  frames: readonly string[];
  texts: Record<CollectText, string>;
};
