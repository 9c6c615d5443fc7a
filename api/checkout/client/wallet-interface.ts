import type { NetworkAddition } from "../pages/script-data.ts";

/** An action that a wallet executes. `chain_id` is the only member of the API that is not in camel case. */
export type WalletRpc = { type: "walletRpc"; data: { chain_id: string; method: string; params: unknown[] } };
export type Action = WalletRpc | { type: "build"; data: { data: string } };

/** A wallet in this browser, of any chain family. */
export type Wallet = {
  key: string;
  /** The networks (CAIP-2) that can pay and belong to the wallet's family. */
  chains: readonly string[];
  name: string;
  /** A data URI; the page loads nothing from another server. */
  icon: string | undefined;
  /** Asks the wallet's owner for accounts and returns them as CAIP-10, one for each supported network. */
  connect: () => Promise<string[]>;
  /**
   * Switches to a network; calls `onPrompt` when the wallet has to ask its owner. Throws WrongNetwork when the wallet is
   * still on another network, whatever the wallet reported.
   */
  switchTo: (chain: string, onPrompt: () => void) => Promise<void>;
  /** Returns whether the wallet still gives access to an account (CAIP-10). */
  hasAccount: (account: string) => Promise<boolean>;
  /** Executes an action with an account (CAIP-10) and returns the result in the form that the API takes. */
  execute: (action: WalletRpc["data"], account: string) => Promise<string>;
  /** Waits until a sent transaction is in a block, because the next action depends on it. */
  awaitReceipt: (result: string) => Promise<void>;
};

/**
 * Finds wallets of one chain family while the page is open.
 * @param chains CAIP-2 identifiers of the family's networks that can pay
 * @param page.additions the networks that wallets may be asked to add
 * @param page.add lists a wallet; `remove` takes it off the list
 */
export type FindWallets = (
  chains: readonly string[],
  page: {
    additions: Readonly<Record<string, NetworkAddition>>;
    add: (wallet: Wallet) => void;
    remove: (key: string) => void;
  },
) => void;

export class WrongNetwork extends Error {}
export class WrongAccount extends Error {}

/** Returns an icon that is a data URI of an image, else undefined. Browsers run no script in such an image. */
export const safeIcon = (icon: unknown): string | undefined =>
  typeof icon === "string" && /^data:image\/(png|webp|svg\+xml|gif|jpeg)[;,]/.test(icon) ? icon : undefined;

/** Returns a wallet's name as text of at most 60 characters. */
export const safeName = (name: unknown): string => String(name).slice(0, 60);
