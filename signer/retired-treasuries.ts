import type { Chain } from "../chains/open-chains.ts";
import type { Refused } from "./protocol.ts";
import { refuse } from "./refuse.ts";
import type { Store } from "./store.ts";

// Treasuries of a store that was lost. Signatures of that store can still move their money and nothing else, so a treasury whose
// records were lost is emptied, and another one pays from then on.

type Treasury = Pick<Chain, "chain" | "treasury">;

/** Records that the rebuild of a treasury's payouts begins or has ended. A repetition changes nothing. */
export function recordRetirement(
  store: Store,
  { chain, treasury }: Treasury,
  { state, at }: { state: "begun" | "ended"; at: Date },
): void {
  store
    .prepare("insert into retired_treasury (chain, treasury, state, at) values (?, ?, ?, ?) on conflict do nothing")
    .run(chain, treasury, state, at.getTime());
}

/** Returns true if the treasury's records were lost. */
export function isRetired(store: Store, { chain, treasury }: Treasury): boolean {
  const found = store
    .prepare("select 1 from retired_treasury where chain = ? and treasury = ? limit 1")
    .get(chain, treasury);
  return found !== undefined;
}

/** Returns why a treasury signs nothing after a store was lost, or undefined. */
export function findRetirementRefusal(store: Store, of: Treasury): Refused | undefined {
  const open = store
    .prepare(`select chain from retired_treasury b where state = 'begun' and not exists (select 1 from retired_treasury e
      where e.chain = b.chain and e.treasury = b.treasury and e.state = 'ended') limit 1`)
    .get();
  if (open) return refuse("rebuild_unfinished");
  return isRetired(store, of) ? refuse("treasury_retired") : undefined;
}
