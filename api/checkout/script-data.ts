/** What pages tell their scripts. Types only: the scripts' own type check reads this file too. */

export type Status = "requires_action" | "processing" | "succeeded" | "failed" | "expired" | "cancelled";

/** Where a payment stands: told at first and with every change. Of this payment, and nothing else. */
export type News = {
  status: Status;
  isFinal: boolean;
  /** Grows with every change. */
  version: number;
  money: "none" | "underway" | "moved" | "unclear";
  /** Until the deadline, milliseconds. */
  leftMs: number;
  /** Where the page leaves to; null while the payment goes on, and for who is sent nowhere. */
  returnUrl: string | null;
  txId: string | null;
  /** Where the transaction can be looked at, if anywhere. */
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
  "checkAgain",
  "processingTitle",
  "processingText",
  "mayClose",
  "succeededTitle",
  "failedTitle",
  "expiredTitle",
  "cancelledTitle",
  "moneyNone",
  "moneyUnclear",
  "troubleText",
  "leaving",
  "staying",
] as const;

export type ScriptText = (typeof scriptTexts)[number];

/** A network as EIP-3085 has it, without its id. */
export type NetworkAddition = {
  chainName: string;
  rpcUrls: string[];
  blockExplorerUrls?: string[];
  nativeCurrency: { name: string; symbol: string; decimals: 18 };
};

export type CheckoutData = News & {
  /** Path of the payment's own routes. */
  base: string;
  language: string;
  /** What the address of the data page needs, so that it looks like this one and leads back to it. */
  dataQuery: string;
  /** Since the present state began, and how long it may take before the buyer is told that he need not wait. */
  sinceMs: number;
  patienceMs: number;
  /** What stands in the texts' places. */
  values: Record<string, string>;
  titles: Record<Status | "unpayable", string>;
  /** CAIP-2 and name of each network that can pay. */
  networks: [string, string][];
  /** By CAIP-2: how a wallet that does not know a network adds it, where the operator has said so. */
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
  /** The payment's page, for who came from there. */
  backUrl: string | null;
  /** Origins that may frame the page, and are told then. */
  frames: readonly string[];
  texts: Record<CollectText, string>;
};
