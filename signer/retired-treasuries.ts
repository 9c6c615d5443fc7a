import { canonicalAddress } from "../chains/canonical-ids.ts";
import type { Chain } from "../chains/chain.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { insertAudited, machineActor } from "./audit/entries.ts";
import type { Refused } from "./protocol.ts";
import { countRecords } from "./records.ts";
import { refuse } from "./refuse.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { inStoreTransaction, type Store } from "./store.ts";

// Treasuries of a store that was lost. Signatures of that store can still move their money and nothing else, so a treasury whose
// records were lost is emptied, and another one pays from then on. The treasuries that were replaced before the loss are retired
// with the present ones: only the operator can name them, because rows and deposits can name any account.

type Treasury = Pick<Chain, "chain" | "treasury">;

/** The treasuries that were replaced before the store was lost, by CAIP-2 id; an empty list says that there was none. */
export type FormerTreasuries = ReadonlyMap<string, readonly string[]>;

/**
 * Records that the rebuild of the networks file's treasuries and of former ones begins. Returns all of them. A repetition needs
 * to name none of the former ones again. Throws an Error if the operator does not say which treasuries a chain had before, or if
 * the store is not one whose rebuild begins, or has begun with this networks file and not ended.
 */
export function retireTreasuries(
  { store, chains, now }: Pick<SignerDeps, "store" | "chains" | "now">,
  former: FormerTreasuries,
): Chain[] {
  const present = [...chains.values()];
  const unknown = [...former.keys()].find((id) => !chains.has(id));
  if (unknown !== undefined) throw new Error(`the networks file lacks ${unknown}`);
  if (!present.every((chain) => isRetired(store, chain))) {
    if (countRecords(store).payouts > 0) throw new Error("the store has payouts: rebuild an empty one");
    if (present.some(({ chain }) => listRetired(store, chain).length > 0))
      throw new Error(
        "the rebuild has begun with another networks file: use the one with the treasuries that were lost",
      );
  }
  const treasuries = present.flatMap((chain) => [
    chain,
    ...listFormer(store, chain, former.get(chain.chain)).map((treasury) =>
      getChainDriver(chain.chain).withTreasury(chain, treasury),
    ),
  ]);
  if (treasuries.some((one) => hasEnded(store, one)))
    throw new Error("the rebuild of this store has ended: it cannot be repeated, and no treasury can be added");
  // All of them or none: a rebuild that began with some would lack the others, or could not be repeated.
  inStoreTransaction(store, () => {
    for (const one of treasuries) recordRetirement(store, one, { state: "begun", at: now() });
  });
  return treasuries;
}

/** Returns the former treasuries of a chain: those that the operator names now and those that they named before. */
function listFormer(store: Store, { chain, treasury }: Treasury, named: readonly string[] | undefined): string[] {
  const before = listRetired(store, chain).filter((one) => one !== treasury);
  if (named === undefined && before.length === 0)
    throw new Error(
      `name each treasury that ${chain} had before ${treasury} with --former ${chain}=<address>, or say --former ${chain}=none: what a treasury has paid that is not named is unknown afterwards`,
    );
  const added = (named ?? []).map((address) => {
    const error = getChainDriver(chain).validateAddress(address);
    if (error) throw new Error(`the former treasury ${address} of ${chain}: ${error}`);
    return canonicalAddress(chain, address);
  });
  if (added.includes(treasury)) throw new Error(`${treasury} is the present treasury of ${chain}`);
  return [...new Set([...before, ...added])];
}

/**
 * Records that the rebuild of a treasury's payouts begins or has ended. A repetition changes nothing. Call it inside a
 * transaction.
 */
export function recordRetirement(
  store: Store,
  { chain, treasury }: Treasury,
  { state, at }: { state: "begun" | "ended"; at: Date },
): void {
  const row = { chain, treasury, state, at: at.getTime() };
  const action = `treasury.retirement_${state}`;
  insertAudited(store, { table: "retired_treasury", row, action, actor: machineActor(), at });
}

/** Returns true if the treasury's records were lost. */
function isRetired(store: Store, { chain, treasury }: Treasury): boolean {
  return listRetired(store, chain).includes(treasury);
}

/** Returns the treasuries of a chain whose records were lost. */
function listRetired(store: Store, chain: string): string[] {
  return store
    .prepare("select treasury from retired_treasury where chain = ? and state = 'begun' order by id")
    .all(chain)
    .map((row) => String(row["treasury"]));
}

/** Returns true if the payouts of a treasury whose records were lost are recorded again. */
function hasEnded(store: Store, { chain, treasury }: Treasury): boolean {
  const found = store
    .prepare("select 1 from retired_treasury where chain = ? and treasury = ? and state = 'ended'")
    .get(chain, treasury);
  return found !== undefined;
}

/**
 * Returns the chain once for each treasury whose deposits are recorded: the networks file's, or while a store is rebuilt those
 * that are retired. Afterwards a deposit into them would come without its payouts. One into a treasury that follows would be in
 * none of the histories, so it waits for the end.
 */
export function listDepositTreasuries(store: Store, chain: Chain): Chain[] {
  const retired = listRetired(store, chain.chain);
  const others = retired.filter((one) => one !== chain.treasury);
  const present = isRebuilding(store) && !retired.includes(chain.treasury) ? [] : [chain];
  return [...present, ...others.map((treasury) => getChainDriver(chain.chain).withTreasury(chain, treasury))].filter(
    (one) => !hasEnded(store, one),
  );
}

/** Returns true while the payouts of a treasury are not recorded again. */
export function isRebuilding(store: Store): boolean {
  const open = store
    .prepare(`select chain from retired_treasury b where state = 'begun' and not exists (select 1 from retired_treasury e
      where e.chain = b.chain and e.treasury = b.treasury and e.state = 'ended') limit 1`)
    .get();
  return open !== undefined;
}

/**
 * Returns true if a merchant may have had destinations in a store that was lost: while it is rebuilt any merchant, and afterwards
 * those with a deposit from before the end of the rebuild. A receiver that is reported for them is not known to be the first.
 */
export function mayHaveLostDestinations(store: Store, merchantId: string): boolean {
  const older = store
    .prepare(`select 1 from deposit where merchant_id = ? and verified_at <=
      (select max(at) from retired_treasury where state = 'ended') limit 1`)
    .get(merchantId);
  return older !== undefined || isRebuilding(store);
}

/** Returns why a treasury signs nothing after a store was lost, or undefined. */
export function findRetirementRefusal(store: Store, of: Treasury): Refused | undefined {
  if (isRebuilding(store)) return refuse("rebuild_unfinished");
  return isRetired(store, of) ? refuse("treasury_retired") : undefined;
}
