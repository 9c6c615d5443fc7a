import type { PaymentState } from "../db/states.ts";
import type { Mode } from "../db/tables.ts";

/** An amount in minor units of `unit` (`iso4217/USD`, or `caip19/` and an asset), with what a person is shown. */
export type Money = {
  unit: string;
  value: bigint;
  display: {
    assetSymbol: string;
    assetName: string;
    decimals: number;
    iconUrl?: string | undefined;
    networkName?: string | undefined;
    networkIconUrl?: string | undefined;
  };
};

/** Where a payment stands. `info` is there when it has succeeded. `stateVersion` grows with every change. */
export type PaymentStatus = {
  paymentId: string;
  state: PaymentState;
  /** True when it will never change again (specification, part 3). */
  isFinal: boolean;
  stateVersion: number;
  failureCode: "declined_user" | null;
  info: { txId: string; optionAmount: Money } | null;
};

/** A payment as its merchant and its buyer see it. */
export type PaymentView = PaymentStatus & {
  mode: Mode;
  referenceId: string | null;
  amount: Money;
  /** `logoId` names our copy of its logo. */
  merchant: { id: string; name: string; logoId: string | null };
  createdAt: Date;
  expiresAt: Date;
};

/** The same with what only its merchant sees. `settlement` is there once its money has been paid out. */
export type PaymentDetail = PaymentView & {
  checkout: { successUrl: string; errorUrl: string } | null;
  settlement: { txId: string; amount: Money } | null;
};

/** Something a wallet executes (specification, 2.9). `chain` is CAIP-2. */
export type WalletAction = { chain: string; method: string; params: readonly unknown[] };
/** What is made only when the wallet is about to execute it: it fetches the actions with `build`. */
export type BuildAction = { build: string };

/** One way to pay. `account` is as the wallet wrote it; `expiresAt` is null when the option lives as long as its payment. */
export type OptionView = {
  id: string;
  account: string;
  amount: Money;
  etaSeconds: number;
  expiresAt: Date | null;
  /** True while data of the buyer is needed before it can be confirmed. */
  needsData: boolean;
  actions: readonly (WalletAction | BuildAction)[];
};
