import { canonicalAddress, canonicalAsset } from "../chains/canonical-ids.ts";
import { recordApprovalKeys } from "./approval-keys.ts";
import { decideDestination } from "./decide-destination.ts";
import { type Destination, findDestinationRefusal, findWaiting, reportDestination } from "./destinations.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import type { DestinationsRequest, DestinationsResponse, Statement } from "./protocol.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { inStoreTransaction } from "./store.ts";

type Deps = Pick<SignerDeps, "store" | "readLimits" | "deployment" | "log" | "now">;

/**
 * Records the destinations and approval keys that a worker reports, so that their waiting periods begin, and decides by the
 * signed statements. Returns undefined while the limits file is missing or invalid: it names the periods and the operators.
 */
export function claimDestinations(deps: Deps, request: DestinationsRequest): DestinationsResponse | undefined {
  const limits = deps.readLimits();
  if (!limits) return undefined;
  const at = deps.now();
  const period = { at, waitingHours: limits.destinationWaitingHours };
  return inStoreTransaction(deps.store, () => {
    for (const key of recordApprovalKeys(deps.store, request.approvalKeys, period))
      deps.log.warn({ merchant: key.merchantId, publicKey: key.publicKey }, "new approval key waits");
    const destinations = request.destinations.map(toCanonical);
    for (const one of destinations) if (reportDestination(deps.store, one, period)) logWaiting(deps, one);
    const statements = request.statements.map((statement) => decide(deps, statement, { limits, at }));
    return { destinations: destinations.map((one) => describe(deps, one, at)), statements };
  });
}

function decide(
  deps: Deps,
  statement: Statement,
  { limits, at }: { limits: NonNullable<ReturnType<Deps["readLimits"]>>; at: Date },
): { ok: boolean; detail: string } {
  const { store, deployment, log } = deps;
  const result = decideDestination({ store, deployment, operators: limits.operators }, statement, at);
  log.warn({ signer: statement.signer, ...result }, "statement about a destination was read");
  return result;
}

function logWaiting({ log }: Deps, { merchantId: merchant, asset, receiver }: Destination): void {
  log.warn({ merchant, asset, receiver }, "destination waits");
}

function describe({ store }: Deps, one: Destination, at: Date): DestinationsResponse["destinations"][number] {
  if (findDestinationRefusal(store, one, at) === undefined) return { state: "applied", appliesAt: null };
  const waiting = findWaiting(store, one, at);
  return waiting ? { state: "waiting", appliesAt: waiting.applies_at } : { state: "rejected", appliesAt: null };
}

function toCanonical({ merchantId, asset: given, receiver }: Destination): Destination {
  const asset = canonicalAsset(given);
  return { merchantId, asset, receiver: canonicalAddress(chainOfAsset(asset), receiver) };
}
