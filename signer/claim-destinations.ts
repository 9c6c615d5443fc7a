import { canonicalAddress, canonicalAsset } from "../chains/canonical-ids.ts";
import { applyDue } from "./apply-due-claims.ts";
import { recordApprovalKeys, revokeApprovalKey } from "./approval-keys.ts";
import { decideStatement } from "./decide-statement.ts";
import {
  type Destination,
  endOtherClaims,
  findDestinationRefusal,
  findWaiting,
  type Period,
  type Recorded,
  type Reported,
  recordDestination,
  recordPast,
  recordServed,
} from "./destinations.ts";
import type { Limits } from "./limits.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import type { DestinationsRequest, DestinationsResponse, Statement } from "./protocol.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { findHoldEnd } from "./stops.ts";
import { inStoreTransaction } from "./store.ts";

type Deps = Pick<SignerDeps, "store" | "readLimits" | "deployment" | "log" | "now">;
type Report = Deps & Pick<SignerDeps, "caller" | "metrics">;

/**
 * Records the destinations and approval keys that a worker reports, so that their waiting periods begin, and decides by the
 * signed statements. Returns undefined while the limits file is missing or invalid: it names the periods and the operators.
 */
export function claimDestinations(deps: Report, request: DestinationsRequest): DestinationsResponse | undefined {
  const limits = deps.readLimits();
  if (!limits) return undefined;
  const { store, log, caller: actor } = deps;
  const at = deps.now();
  const isHeld = limits.paused || findHoldEnd(store, at) > 0;
  const period = { at, waitingHours: limits.destinationWaitingHours, isHeld, actor };
  return inStoreTransaction(store, () => {
    for (const { merchantId: merchant, publicKey } of recordApprovalKeys(store, request.approvalKeys, period))
      log.warn({ merchant, publicKey }, "new approval key waits");
    for (const key of request.revokedKeys)
      if (revokeApprovalKey(store, key, { ...period, text: null }))
        log.warn({ merchant: key.merchantId, publicKey: key.publicKey }, "approval key is revoked");
    const destinations = request.destinations.map(toCanonical);
    recordReport(deps, destinations, period);
    // Statements first: a rejection may have waited for a signer that was down when the claim became due.
    const statements = request.statements.map((statement) => decide(deps, statement, { limits, at }));
    if (!limits.paused) applyDue(deps, at);
    return { destinations: destinations.map((one) => describe(deps, one)), statements };
  });
}

/** Records the destinations of a report, which has all of each merchant and asset that it names. */
function recordReport(deps: Report, reported: readonly Reported[], period: Period): void {
  const { store, log } = deps;
  for (const one of reported) if (one.state !== "past") noteRecorded(deps, one, recordDestination(store, one, period));
  // After the others, so that none of them is a merchant's first destination.
  for (const { state, ...one } of reported)
    if (state === "past" && recordPast(store, one, period)) {
      const { merchantId: merchant, asset, receiver } = one;
      log.warn({ merchant, asset, receiver }, "destination was left before its report");
    }
  endOtherClaims(store, reported, period);
  for (const { state, ...one } of reported) if (state === "applied") recordServed(store, one, period);
}

/**
 * Decides by signed statements that an operator has brought to the signer's machine, because a thief of the service's database
 * can withhold those that it stores. Returns undefined while the limits file is missing or invalid.
 */
export function decideStatements(
  deps: Deps,
  statements: readonly Statement[],
): DestinationsResponse["statements"] | undefined {
  const limits = deps.readLimits();
  if (!limits) return undefined;
  const at = deps.now();
  return inStoreTransaction(deps.store, () => statements.map((one) => decide(deps, one, { limits, at })));
}

function decide(
  { store, deployment, log }: Deps,
  statement: Statement,
  { limits, at }: { limits: Limits; at: Date },
): { ok: boolean; detail: string } {
  const result = decideStatement({ store, deployment, limits }, statement, at);
  log.warn({ signer: statement.signer, ...result }, "signed statement was read");
  return result;
}

/** Logs what became of a destination that was recorded, and counts those that apply without waiting. */
export function noteRecorded(
  { log, metrics }: Pick<SignerDeps, "log" | "metrics">,
  { merchantId: merchant, asset, receiver }: Destination,
  recorded: Recorded | undefined,
): void {
  if (recorded === "waits") log.warn({ merchant, asset, receiver }, "destination waits");
  if (recorded !== "first") return;
  metrics.signerFirstDestinations.inc();
  log.info({ merchant, asset, receiver }, "first destination applies at once");
}

function describe({ store, now }: Deps, one: Destination): DestinationsResponse["destinations"][number] {
  if (findDestinationRefusal(store, one) === undefined) return { state: "applied", appliesAt: null };
  const waiting = findWaiting(store, one);
  if (!waiting) return { state: "rejected", appliesAt: null };
  return { state: "waiting", appliesAt: Math.max(waiting.appliesAt ?? 0, findHoldEnd(store, now())) };
}

function toCanonical({ asset: given, receiver, ...one }: Reported): Reported {
  const asset = canonicalAsset(given);
  return { ...one, asset, receiver: canonicalAddress(chainOfAsset(asset), receiver) };
}
