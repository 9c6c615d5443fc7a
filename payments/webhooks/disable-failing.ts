import type { EndpointRow } from "../../db/queries/webhook-endpoints.ts";
import { clearFailure, noteFailure, updateEndpoint } from "../../db/queries/webhook-endpoints.ts";
import { done } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { changeLocked } from "./lock-endpoint.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** An endpoint that has accepted nothing for this long is disabled, milliseconds. Longer than all attempts of one event. */
const FAILING_MS = 5 * 24 * HOUR_MS;
/**
 * A failure that is older than this does not count, milliseconds: the endpoint had nothing to accept since. Longer than any
 * wait between two attempts.
 */
const QUIET_MS = 12 * HOUR_MS;

type Health = Pick<EndpointRow, "failing_since" | "failed_at">;

type Deps = Pick<PaymentDeps, "db" | "now" | "log">;

/**
 * Notes whether an endpoint has accepted any of the events that were just sent. Disables it when it has accepted nothing for
 * five days, without a pause of twelve hours between two failures: its account gets an event at its other endpoints, and the
 * log and the audit log say so. Returns the first and the last failure.
 */
export async function noteHealth(
  deps: Deps,
  endpoint: Health & Pick<EndpointRow, "id">,
  { isAccepting, at }: { isAccepting: boolean; at: Date },
): Promise<Health> {
  const { id, failing_since: failingSince, failed_at: failedAt } = endpoint;
  if (isAccepting) {
    if (failingSince) await clearFailure(deps.db, id);
    return { failing_since: null, failed_at: failedAt };
  }
  const restartBefore = new Date(at.getTime() - QUIET_MS);
  const hasFailed = failingSince !== null && failedAt !== null && failedAt >= restartBefore;
  // A later failure of the same minute is not noted.
  const isNoted = hasFailed && at.getTime() - failedAt.getTime() < MINUTE_MS;
  if (!isNoted) await noteFailure(deps.db, id, { at, restartBefore });
  if (hasFailed && at.getTime() - failingSince.getTime() >= FAILING_MS) await disable(deps, id);
  return { failing_since: hasFailed ? failingSince : at, failed_at: isNoted ? failedAt : at };
}

async function disable(deps: Deps, endpointId: string): Promise<void> {
  const actor = { kind: "worker", id: "deliver-webhook", address: null } as const;
  const at = deps.now();
  const disabled = await changeLocked<{ accountId: string; failingSince: Date } | undefined>(
    deps,
    { endpointId, actor },
    async (db, row) => {
      const { failing_since: failingSince } = row;
      // Another worker has sent an event meanwhile, or the endpoint was disabled.
      if (!failingSince || row.disabled_at || at.getTime() - failingSince.getTime() < FAILING_MS)
        return done({ value: undefined });
      await updateEndpoint(db, row.id, { disabled_at: at, disabled_reason: "failing" });
      const after = { disabled: "failing", failingSince: failingSince.toISOString() };
      const audit = { action: "webhook_endpoint.disabled", before: null, after };
      const value = { accountId: row.account_id, failingSince };
      return done({ value, audit, event: { type: "webhook_endpoint.disabled", reason: "failing" } });
    },
  );
  if (disabled.ok && disabled.value)
    deps.log.warn(
      { endpoint: endpointId, ...disabled.value },
      "webhook endpoint disabled: it has failed for five days",
    );
}
