import type { Chains } from "../chains/chain.ts";
import type { PayoutSigner } from "../chains/payout-signer.ts";
import type { Log } from "../runtime/log.ts";
import type { Metrics } from "../runtime/metrics.ts";
import type { Actor } from "./audit/entries.ts";
import type { Limits } from "./limits.ts";
import type { Refused } from "./protocol.ts";
import type { ShortPayouts } from "./short-payouts.ts";
import type { Store } from "./store.ts";

/** The dependencies of the signer's functions. signer/main.ts creates them once. */
export type SignerDeps = {
  store: Store;
  /** Read through the signer's own endpoints. */
  chains: Chains;
  /** Returns why a chain of the networks file is not signed for: it does not match the file, or was not compared yet. */
  checkChain: (chain: string) => Promise<Refused | undefined>;
  deployment: string;
  /** The treasury's keys, by CAIP-2 id. */
  treasuryKeys: ReadonlyMap<string, PayoutSigner>;
  /** Returns undefined while the limits file is missing or invalid. */
  readLimits: () => Limits | undefined;
  /** Who has sent the request that is answered. */
  caller: Actor;
  log: Log;
  metrics: Metrics;
  shortPayouts: ShortPayouts;
  /** The signer's own clock, which decides when a destination applies and which payouts a limit counts. */
  now: () => Date;
};
