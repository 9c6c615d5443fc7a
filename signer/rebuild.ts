import { canonicalAddress } from "../chains/canonical-ids.ts";
import type { Chain } from "../chains/chain.ts";
import type { TokenMovement } from "../chains/token-movement.ts";
import { attributeOutflows, type Outflow } from "./attribute-outflows.ts";
import { machineActor } from "./audit/entries.ts";
import { recordExceptions } from "./audit/rebuild-exceptions.ts";
import { insertDestination } from "./destinations.ts";
import { countRecords, insertPayout, isOfTreasury, listDepositPlaces } from "./records.ts";
import { type FormerTreasuries, recordRetirement, retireTreasuries } from "./retired-treasuries.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { inStoreTransaction, type Store } from "./store.ts";
import { compareBalances, type Held, type Histories, placeOf, readHistories } from "./treasury-histories.ts";

type Deps = Pick<SignerDeps, "store" | "chains" | "deployment" | "log" | "metrics" | "now">;

/** What the operator knows about the treasuries. */
export type RebuildOptions = {
  /** The treasuries that were replaced before the loss. Nothing but the operator's own records may name them. */
  former: FormerTreasuries;
  /** The first block to read, by CAIP-2 id; 0 by default. It must be before the first transfer into any of the treasuries. */
  from: ReadonlyMap<string, number>;
  /** Transfers out of a treasury that belong to no payout, as `txHash/logIndex`. */
  accepted: ReadonlySet<string>;
  /** Most that may stay in each treasury, by asset, minor units; 0 by default. Lost signatures can still take it. */
  left: ReadonlyMap<string, bigint>;
};

/** The payouts that were recorded, the transfers out of a treasury that belong to no payout, and what is still in one. */
type Rebuilt = {
  recorded: number;
  unattributed: { chain: string; txHash: string; logIndex: number; amount: bigint }[];
  held: Held[];
};

/**
 * Records the payouts that the chains show, for a store that was lost, and retires the treasuries: they sign nothing again.
 * The lost store has signed payouts that are unknown now. They move money of its treasuries and no other, so nothing is recorded
 * until every treasury is empty at the end of the history that was read. From then on no unknown signature can move anything.
 * The deposits must have been claimed before: they name the merchants and payments whose payouts are looked for. Records nothing
 * while one transfer out of a treasury belongs to no payout, unless the operator accepts it. Throws an Error if the store was
 * not lost or has no deposits, if a history has no movement, lacks a deposit or differs from the balances, and if a deposit was
 * verified while it was read.
 */
export async function rebuildPayouts(deps: Deps, options: RebuildOptions): Promise<Rebuilt> {
  const { store, now } = deps;
  const { from, accepted, left } = options;
  const treasuries = retireTreasuries(deps, options.former);
  const { deposits } = countRecords(store);
  if (deposits === 0)
    throw new Error(
      "the store has no deposits: start the signer and run `admin payouts claim-deposits`, then repeat this",
    );
  const histories = await readHistories(deps, treasuries, from);
  requireMovements(deps, treasuries, histories);
  requireDeposits(deps, histories);
  await compareBalances(treasuries, histories.held, left);

  const outflows = attributeOutflows(deps, histories);
  const isAccepted = ({ movement }: Outflow) => accepted.has(`${movement.txHash}/${movement.logIndex}`);
  const unattributed = outflows.filter((one) => !one.of && !isRecorded(store, one) && !isAccepted(one));
  // A negative amount means that the history begins too late.
  const isLeft = ({ asset, amount }: Held) => amount >= 0n && amount <= (left.get(asset) ?? 0n);
  const held = histories.held.filter((one) => !isLeft(one));
  const isComplete = unattributed.length === 0 && held.length === 0;
  if (isComplete)
    inStoreTransaction(store, () => {
      // A deposit that was verified meanwhile may be younger than the history, and an old signature may have taken its money.
      if (countRecords(store).deposits !== deposits)
        throw new Error("deposits were verified during the rebuild: stop the signer, and repeat this");
      recordOutflows(store, outflows);
      recordDestinations(deps, outflows);
      recordExceptions(deps, { accepted, left });
      for (const one of treasuries) recordRetirement(store, one, { state: "ended", at: now() });
    });
  return {
    recorded: isComplete ? outflows.length : 0,
    unattributed: unattributed.map(({ chain, movement }) => {
      const { txHash, logIndex, amount } = movement;
      return { chain, txHash, logIndex, amount };
    }),
    held,
  };
}

/** Throws an Error if a former treasury has no movement: it was named wrongly, or the history begins after it. */
function requireMovements({ chains }: Deps, treasuries: readonly Chain[], { held }: Histories): void {
  const isEmpty = ({ chain, treasury }: Chain) =>
    chains.get(chain)?.treasury !== treasury && !held.some((one) => one.chain === chain && one.treasury === treasury);
  const wrong = treasuries.find(isEmpty);
  if (wrong)
    throw new Error(
      `no transfer of the former treasury ${wrong.treasury} was found on ${wrong.chain}: begin with an earlier block; if the address is wrong, delete the store and begin again`,
    );
}

/** Throws an Error if a history lacks a deposit that was verified. */
function requireDeposits({ store }: Deps, { inflows }: Histories): void {
  const seen = new Set(inflows.map(({ chain, movement }) => placeOf({ chain, ...movement })));
  const missing = listDepositPlaces(store).find((place) => !seen.has(placeOf(place)));
  if (missing)
    throw new Error(
      `the history lacks the deposit ${placeOf(missing)}: it begins too late, or the endpoint leaves out movements`,
    );
}

/** Returns true if the store has this payout of this treasury, for example a withdrawal that has emptied it. */
function isRecorded(store: Store, { asset, movement }: Outflow): boolean {
  return isOfTreasury(store, { nonce: nonceOf(movement), asset, treasury: movement.payer });
}

const nonceOf = ({ authorizationNonce, txHash, logIndex }: TokenMovement) =>
  authorizationNonce ?? `${txHash}/${logIndex}`;

/** Records payouts. Windows of limits do not count them. Two treasuries may have made the same one, and both count. */
function recordOutflows(store: Store, outflows: readonly Outflow[]): void {
  const added = outflows.filter((one) => !isRecorded(store, one));
  for (const one of added) {
    const { amount, payer: treasury } = one.movement;
    const { kind, merchantId, paymentId } = one.of ?? { kind: "accepted", merchantId: null, paymentId: null };
    const of = { asset: one.asset, receiver: receiverOf(one), merchantId, paymentId };
    const payout = { ...of, nonce: nonceOf(one.movement), kind, treasury, amount, counted: amount };
    insertPayout(store, payout, new Date(0), { isPast: true });
  }
}

const receiverOf = ({ chain, movement }: Outflow) => canonicalAddress(chain, movement.receiver);

/**
 * Records the receiver of a merchant's last settlement of an asset as its destination: the last one by time, whichever treasury
 * has made it, if it is also the receiver of the highest number. Otherwise an attacker may have submitted a signature that they
 * had kept, for an account that the merchant has replaced, and the next receiver has to wait.
 */
function recordDestinations(
  { store, log, now }: Pick<Deps, "store" | "log" | "now">,
  outflows: readonly Outflow[],
): void {
  const settled = outflows.flatMap((one) => {
    const merchantId = one.of?.kind === "settlement" ? one.of.merchantId : null;
    const { asset, movement, of } = one;
    const number = of?.number ?? 0;
    return merchantId === null
      ? []
      : [{ merchantId, asset, receiver: receiverOf(one), number, block: movement.blockNumber }];
  });
  for (const some of Map.groupBy(settled, ({ merchantId, asset }) => `${merchantId} ${asset}`).values()) {
    const last = some.toSorted((a, b) => a.block - b.block || a.number - b.number).at(-1);
    const highest = some.toSorted((a, b) => a.number - b.number || a.block - b.block).at(-1);
    if (!last) continue;
    const { merchantId, asset, receiver } = last;
    if (receiver === highest?.receiver)
      insertDestination(
        store,
        { merchantId, asset, receiver },
        { at: now(), claimedAt: 0, appliesAt: null, actor: machineActor() },
      );
    else log.warn({ merchantId, asset }, "the chain does not show the merchant's destination: it has to wait");
  }
}
