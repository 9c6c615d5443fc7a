import type { Action, PaymentOption } from "../api-types.ts";

/** An action that a wallet executes. */
export type WalletRpc = Extract<Action, { type: "walletRpc" }>["data"];

/** Executes a buyer's actions: `evmSigner` and `solanaSigner` return one. */
export type WalletSigner = {
  /** Returns the accounts that can pay (CAIP-10), one for each chain. */
  listAccounts(): Promise<readonly string[]>;
  /** Returns true for an account (CAIP-10) of this wallet, in any spelling. */
  owns(account: string): boolean;
  /** Returns true when the wallet can execute these actions. */
  canExecute(actions: readonly Action[]): boolean;
  /**
   * Executes the actions of an option in order and returns one result for each. Rejects with an `UnsafeActionError`, before
   * anything is signed or sent, when the actions do something else than to pay the option; with an `UnknownSendError` when the
   * transaction that pays may have been sent. After any other error the payment is not paid.
   */
  execute(actions: readonly WalletRpc[], option: PaymentOption): Promise<string[]>;
};
