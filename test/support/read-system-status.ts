import type { GaugeDeps } from "../../payments/maintenance/gauge-deps.ts";
import { createSystemReads } from "../../payments/maintenance/system-gauges.ts";

/** Reads the gauges of all groups, one statement after the other. Throws the error of a group that cannot be read. */
export async function readSystemStatus(deps: GaugeDeps) {
  const read = createSystemReads(deps);
  return {
    ...(await read.overdue()),
    ...(await read.transfers()),
    ...(await read.held()),
    ...(await read.chains()),
    ...(await read.lanes()),
    ...(await read.bookings()),
    ...(await read.reconciliations()),
    ...(await read.ledger_checks()),
    ...(await read.payments()),
    ...(await read.refunds()),
    ...(await read.payouts()),
    ...(await read.destinations()),
    ...(await read.history()),
    ...(await read.webhooks()),
    ...(await read.audit()),
    ...(await read.signer_log()),
    ...(await read.database()),
    ...(await read.retention()),
  };
}
