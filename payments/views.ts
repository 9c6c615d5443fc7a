import type { PaymentState } from "../db/states.ts";
import type { Mode } from "../db/tables.ts";
import type { WalletAction } from "../transfers/wallet-driver.ts";

/** An amount in minor units of `unit` (`iso4217/USD`, or `caip19/` and an asset), with its display data. */
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

/** The status of a payment. `info` is set once it has succeeded. `stateVersion` grows with every change. */
export type PaymentStatus = {
  paymentId: string;
  state: PaymentState;
  /** True when the state is final (specification, part 3). */
  isFinal: boolean;
  stateVersion: number;
  /** When the state changed last. */
  changedAt: Date;
  failureCode: "declined_user" | null;
  info: { txId: string; optionAmount: Money } | null;
};

/** A payment as its merchant and its buyer see it. */
export type PaymentView = PaymentStatus & {
  mode: Mode;
  referenceId: string | null;
  amount: Money;
  /** `logoId` is the id of our copy of its logo. */
  merchant: { id: string; name: string; logoId: string | null };
  createdAt: Date;
  expiresAt: Date;
};

/** A payment with the fields that only its merchant sees. `settlement` is set once the payment has been paid out. */
export type PaymentDetail = PaymentView & {
  description: string | null;
  /** The merchant's own values by their own names. */
  metadata: Record<string, string>;
  checkout: { successUrl: string; errorUrl: string } | null;
  settlement: { txId: string; amount: Money } | null;
  /** What its refunds return or will return; null without one. */
  refundedAmount: Money | null;
};

/** An action that is built on demand: the wallet fetches the actions with `build` before it executes them. */
export type BuildAction = { build: string };

/**
 * One way to pay. `account` is in the wallet's spelling. `expiresAt` is null when the option is valid as long as its
 * payment.
 */
export type OptionView = {
  id: string;
  account: string;
  amount: Money;
  etaSeconds: number;
  expiresAt: Date | null;
  /** True while the option needs buyer data before it can be confirmed. */
  needsData: boolean;
  actions: readonly (WalletAction | BuildAction)[];
};
