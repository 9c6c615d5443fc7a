import { parseAccountId } from "../../chains/caip.ts";
import {
  hasUnreported,
  listUnreportedChanges,
  listUnreportedKeys,
  lockReports,
  markKeysReported,
  markReported,
} from "../../db/queries/destination-reports.ts";
import { listUnreportedStatements, recordOutcomes } from "../../db/queries/signed-statements.ts";
import type { TreasurySigner } from "../../signer/treasury-signer.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "db" | "now" | "log"> & { signer: Pick<TreasurySigner, "claimDestinations"> };

/** Changes and statements of one request; the signer accepts 200 of each. */
const LIMIT = 100;

/** Returns true while there is something to tell the signer. */
export function hasUnreportedDestinations({ db }: Pick<Deps, "db">): Promise<boolean> {
  return hasUnreported(db);
}

/**
 * Tells the signer which destinations live merchants ask for, what operators and approvers have signed about them, and the
 * keys of the approvers. The signer's own waiting period begins with the report. One worker reports at a time, so that an
 * older report never follows a newer one. While the signer does not answer, the rows stay and are reported later.
 */
export async function reportDestinations(deps: Deps): Promise<void> {
  await deps.db.transaction().execute(async (db) => {
    if (!(await lockReports(db))) return;
    const changes = await listUnreportedChanges(db, LIMIT);
    const statements = await listUnreportedStatements(db, LIMIT);
    const destinations = changes.flatMap(({ mode, merchant_id: merchantId, asset, wanted }) => {
      const account = parseAccountId(wanted ?? "");
      return mode === "live" && account ? [{ merchantId, asset, receiver: account.address }] : [];
    });
    const keys = await listUnreportedKeys(db, { now: deps.now(), limit: LIMIT });
    if (destinations.length + statements.length + keys.length > 0) {
      const answer = await deps.signer.claimDestinations({
        destinations,
        statements: statements.map(({ text, signer, signature }) => ({ text, signer, signature })),
        approvalKeys: keys.map(({ merchant_id: merchantId, public_key: publicKey }) => ({ merchantId, publicKey })),
      });
      if (!answer) return;
      const outcomes = statements.map(({ id, subject, signer }, index) => {
        const { ok = false, detail = "no answer" } = answer.statements[index] ?? {};
        deps.log.info({ change: subject, by: signer, ok, detail }, "signer has read a statement");
        return { id, outcome: ok ? detail : `refused: ${detail}` };
      });
      await recordOutcomes(db, outcomes, deps.now());
      await markKeysReported(db, keys, deps.now());
    }
    await markReported(db, changes, deps.now());
  });
}
