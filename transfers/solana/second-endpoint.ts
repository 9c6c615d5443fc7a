import { listLackingSlot } from "../../chains/solana/lacking-slots.ts";
import type { SolanaChain, SolanaToken } from "../../chains/solana/open-solana-chain.ts";
import {
  type EndpointStatus,
  readEndpointStatuses,
  type SignatureStatus,
} from "../../chains/solana/signature-statuses.ts";
import { readTransactionFromEach } from "../../chains/solana/transaction-history.ts";
import { readMovements } from "../../chains/solana/treasury-movements.ts";
import { endWait, hasWaitedLongEnough, type Waits } from "../endpoint-waits.ts";
import { isLargeAmount } from "../large-amount.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { REQUIRED_ENDPOINTS } from "./list-agreement.ts";
import type { TrackedTransaction } from "./tracked-transaction.ts";

/** A movement to be booked: its mint and its position. `isOurs` is true for a transaction that we signed. */
type Movement = { hash: string; slot: number; token: string; amount: bigint; receiver: string; isOurs: boolean };

/** Waits for a second endpoint that shows movements, and for one that shows transactions of ours as final. */
const movementWaits: Waits = new WeakMap();
const finalWaits: Waits = new WeakMap();
/** An hour of slots. A wait for a slot that is further ahead than that of the second endpoint ends after it, because it may be invented. */
const LONGEST_LAG_SLOTS = 9_000;

/**
 * Returns the movements that a second endpoint shows as well, in the same slot and at the depth of the network's finality.
 * Skips an endpoint that does not answer, and the only other one if it lags for too long, except for large movements
 * (`agreementThreshold` in the networks file).
 * An endpoint that disagrees keeps a movement from being booked, unless it has lost the slot (`keepDenials`). The amount of a movement
 * that we did not sign also depends on the endpoint, so a large one is read from two endpoints.
 */
export async function keepAgreedMovements<M>(
  deps: Pick<TransferDeps, "metrics" | "log" | "now">,
  chain: SolanaChain,
  all: readonly M[],
  describe: (one: M) => Movement,
): Promise<M[]> {
  if (all.length === 0) return [];
  const movements = all.map((one) => ({ one, ...describe(one) }));
  const reports = await readEndpointStatuses(
    chain,
    movements.map(({ hash }) => hash),
  );
  const kept: M[] = [];
  let isTrustedAlone = false;
  for (const movement of movements) {
    const reported = reports.get(movement.hash) ?? [];
    const agreeing = reported.filter(({ status }) => status !== undefined && isSame(chain, status, movement));
    const others = reported.filter((report) => !agreeing.includes(report) && isDenial(report, movement));
    const denying = await keepDenials(deps, chain, others, { ...movement, agreeing: agreeing.length });
    const isLarge = isLargeAmount(chain, findToken(chain, movement.token), movement.amount);
    const isAgreed = agreeing.length >= REQUIRED_ENDPOINTS;
    const waits = movementWaits;
    const counts = isEnough(deps, chain, { waits, slot: movement.slot, reported, agreeing, denying });
    if (denying.length > 0)
      deps.log.error(
        { chain: chain.chain, tx: movement.hash },
        "endpoints disagree about a transaction; it is not booked",
      );
    else if (isLarge ? isAgreed && (await isReadTwice(chain, movement)) : counts) {
      kept.push(movement.one);
      if (!isAgreed) isTrustedAlone = true;
    } else if (isLarge) {
      deps.metrics.agreementWaits.inc({ chain: chain.chain });
      deps.log.warn({ chain: chain.chain, tx: movement.hash }, "large movement waits for a second endpoint");
    }
  }
  if (isTrustedAlone && chain.network.rpc.length >= REQUIRED_ENDPOINTS) {
    deps.metrics.singleEndpointConfirmations.inc({ chain: chain.chain });
    deps.log.warn(
      { chain: chain.chain },
      "no second endpoint shows a movement in time; one is trusted except for large amounts",
    );
  }
  return kept;
}

/**
 * Returns transactions of ours with the statuses that may be applied. A final status ends the watching of a transaction, and
 * a failure its payment, so a second endpoint must show the same slot, depth and outcome. Otherwise the transaction gets a
 * lower depth and is read again: a success `confirmed`, a failure `processed`. An endpoint that has lost the slot does not count
 * (`keepDenials`). A success does not wait for an endpoint that does not answer or lags for too long; a failure does. Makes one request
 * to each endpoint, and none where there is only one.
 */
export async function lowerUnagreed(
  deps: Pick<TransferDeps, "metrics" | "log" | "now">,
  chain: SolanaChain,
  tracked: readonly TrackedTransaction[],
): Promise<TrackedTransaction[]> {
  const claims = chain.network.rpc.length < REQUIRED_ENDPOINTS ? [] : tracked.filter(needsAgreement);
  if (claims.length === 0) return [...tracked];
  const reports = await readEndpointStatuses(
    chain,
    claims.map(({ row }) => row.hash),
  );
  const unagreed = new Set<TrackedTransaction>();
  for (const claim of claims) {
    const { row, status } = claim;
    if (!status) continue;
    const reported = reports.get(row.hash) ?? [];
    const agreeing = reported.filter((one) => one.status && isSameOutcome(one.status, status));
    const others = reported.filter((one) => isOtherOutcome(one, status));
    const denying = await keepDenials(deps, chain, others, { ...row, ...status, agreeing: agreeing.length });
    const waits = status.error ? undefined : finalWaits;
    if (isEnough(deps, chain, { waits, slot: status.slot, reported, agreeing, denying })) continue;
    unagreed.add(claim);
    if (denying.length > 0)
      deps.log.error({ chain: chain.chain, tx: row.hash }, "endpoints disagree about how a transaction of ours ended");
  }
  return tracked.map((one) => (unagreed.has(one) ? lower(one) : one));
}

/**
 * Counts the endpoints that disagree about a transaction in a slot, and returns those whose word counts. An endpoint that has no block in
 * the slot knows nothing of its transactions: where two others agree, they decide. One other endpoint does not suffice, because it
 * could name a slot that the cluster has skipped.
 */
async function keepDenials(
  deps: Pick<TransferDeps, "metrics" | "log">,
  chain: SolanaChain,
  denying: readonly EndpointStatus[],
  { hash: tx, slot, agreeing }: { hash: string; slot: number; agreeing: number },
): Promise<readonly EndpointStatus[]> {
  for (const { by } of denying) deps.metrics.endpointDisagreements.inc({ chain: chain.chain, endpoint: by });
  if (denying.length === 0 || agreeing < REQUIRED_ENDPOINTS) return denying;
  const lacking = await listLackingSlot(chain, slot);
  const kept = denying.filter(({ by, status }) => status !== undefined || !lacking.has(by));
  if (kept.length < denying.length)
    deps.log.warn(
      { chain: chain.chain, tx, slot, endpoints: [...lacking] },
      "an endpoint has lost a slot; two others decide",
    );
  return kept;
}

/** Returns true for a status that is final, and for a failure that is not recorded yet. */
function needsAgreement({ row, status }: TrackedTransaction): boolean {
  if (!status || status.depth === "processed") return false;
  const isRecorded = row.state === "included" && row.reverted === true && row.slot === status.slot;
  return status.depth === "finalized" || (status.error !== undefined && !isRecorded);
}

function isSameOutcome(status: SignatureStatus, claim: SignatureStatus): boolean {
  const isDeep = claim.depth === "finalized" ? status.depth === "finalized" : status.depth !== "processed";
  return isDeep && status.slot === claim.slot && !status.error === !claim.error;
}

/** Returns true when an endpoint has reached the slot and shows no transaction, or another outcome, there. */
function isOtherOutcome({ slot, status }: EndpointStatus, claim: SignatureStatus): boolean {
  if (!status) return slot >= claim.slot;
  return status.slot !== claim.slot || !status.error !== !claim.error;
}

function lower({ status, ...one }: TrackedTransaction): TrackedTransaction {
  return { ...one, status: status && { ...status, depth: status.error ? "processed" : "confirmed" } };
}

function isSame(chain: SolanaChain, status: NonNullable<EndpointStatus["status"]>, { slot }: Movement): boolean {
  const { finality } = chain.network;
  return !status.error && status.slot === slot && (status.depth === "finalized" || status.depth === finality);
}

/**
 * Returns true when an endpoint has reached the slot and shows no transaction, or another result, there. A status at a lower
 * depth is no denial.
 */
function isDenial({ slot, status }: EndpointStatus, movement: Movement): boolean {
  if (!status) return slot >= movement.slot;
  return status.error !== undefined || status.slot !== movement.slot;
}

/**
 * Returns true when no endpoint denies a transaction, and those that show it are enough: two, or one once the only other one has lagged
 * for too long or does not answer. Never one where there are no `waits`, nor while two others answer. Only two that agree in the slot
 * that is waited for, or in a later one, end the wait.
 */
function isEnough(
  deps: Pick<TransferDeps, "now">,
  { rpc: of, network: { slotMs: blockMs } }: SolanaChain,
  {
    waits,
    slot,
    ...endpoints
  }: Record<"reported" | "agreeing" | "denying", readonly EndpointStatus[]> & {
    waits: Waits | undefined;
    slot: number;
  },
): boolean {
  const [reported, agreeing] = [endpoints.reported.length, endpoints.agreeing.length];
  if (endpoints.denying.length > 0) return false;
  if (agreeing >= REQUIRED_ENDPOINTS) {
    if (waits) endWait({ waits, of }, slot);
    return true;
  }
  if (!waits || agreeing === 0) return false;
  if (reported < REQUIRED_ENDPOINTS) return true;
  const [, second = slot] = endpoints.reported.map((one) => one.slot).toSorted((a, b) => b - a);
  const wanted = Math.min(slot, second + LONGEST_LAG_SLOTS);
  const hasWaited = hasWaitedLongEnough(deps, { waits, of, blockMs }, { wanted, reached: -1 });
  return hasWaited && reported === REQUIRED_ENDPOINTS;
}

function findToken(chain: SolanaChain, mint: string): SolanaToken | undefined {
  return [...chain.tokens.values()].find((one) => one.token === mint);
}

/** Returns true when two endpoints show the amount of a movement. Transactions that we signed need no second read. */
async function isReadTwice(chain: SolanaChain, { hash, isOurs, token, receiver, amount }: Movement): Promise<boolean> {
  if (isOurs) return true;
  const account = findToken(chain, token)?.treasuryAccount ?? "";
  const treasury = { owner: chain.treasury, accounts: new Map([[account, token]]) };
  const wanted = { signature: hash, commitment: "finalized" } as const;
  const shown = await readTransactionFromEach(chain, wanted, (transaction) =>
    readMovements(transaction, treasury).some((one) => one.receiver === receiver && one.amount === amount),
  );
  return shown.filter(({ answer }) => answer).length >= REQUIRED_ENDPOINTS;
}
