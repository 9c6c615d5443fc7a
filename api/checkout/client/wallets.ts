/** Something the wallet executes; `chain_id` is the one name on the wire that is not in camel case. */
export type WalletRpc = { type: "walletRpc"; data: { chain_id: string; method: string; params: unknown[] } };
export type Action = WalletRpc | { type: "build"; data: { data: string } };

/** A wallet in this browser, of whichever family. */
export type Wallet = {
  key: string;
  name: string;
  /** A data URI; nothing is loaded from anybody's server. */
  icon: string | undefined;
  /** Asks its owner for accounts; CAIP-10, on every network of ours that it can use. */
  connect: () => Promise<string[]>;
  /**
   * Turns to a network; `tell` is called when its owner is asked for that. Throws WrongNetwork when it has not, whatever
   * it says.
   */
  turnTo: (chain: string, tell: () => void) => Promise<void>;
  /** Says whether an account (CAIP-10) is still one that it would act with. */
  holds: (account: string) => Promise<boolean>;
  /** Executes an action with an account (CAIP-10); gives its result as the service takes it. */
  perform: (action: WalletRpc["data"], account: string) => Promise<string>;
  /** Waits until something that was sent is in a block, because the next action needs it. */
  settle: (result: string) => Promise<void>;
};

export class WrongNetwork extends Error {}
export class WrongAccount extends Error {}

/** Pictures that a browser shows without running anything in them. */
export const safeIcon = (icon: unknown): string | undefined =>
  typeof icon === "string" && /^data:image\/(png|webp|svg\+xml|gif|jpeg)[;,]/.test(icon) ? icon : undefined;

/** The rule for names from outside: text, and not endless. */
export const safeName = (name: unknown): string => String(name).slice(0, 60);
