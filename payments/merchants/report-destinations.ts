import { parseAccountId } from "../../chains/caip.ts";
import {
  findOldestUnreported,
  hasUnreported,
  listUnreportedChanges,
  listUnreportedKeys,
  lockReports,
  markKeysReported,
  markReported,
  markUnreported,
  type UnreportedChange,
  type UnreportedKey,
} from "../../db/queries/destination-reports.ts";
import { listUnreportedStatements, recordOutcomes } from "../../db/queries/signed-statements.ts";
import { approvalKey, destination, statement } from "../../signer/protocol.ts";
import type { TreasurySigner } from "../../signer/treasury-signer.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "db" | "now" | "log"> & { signer: Pick<TreasurySigner, "claimDestinations"> };

/** Statements and approval keys of one request, and changes, each with up to three destinations; the signer accepts 200 of each. */
const LIMIT = 100;
const CHANGES = 60;

/** After this time all approval keys are reported to the signer again, milliseconds: its store may have been restored or rebuilt. */
const REPEAT_KEYS_MS = 24 * 3_600_000;
const keysBefore = ({ now }: Pick<Deps, "now">) => new Date(now().getTime() - REPEAT_KEYS_MS);

/** How late the daily report of a key may be, milliseconds: a signer that does not answer has alerts of its own. */
const LATE_KEYS_MS = 3_600_000;

/** Returns true while there is something to report to the signer. */
export function hasUnreportedDestinations(deps: Pick<Deps, "db" | "now">): Promise<boolean> {
  return hasUnreported(deps.db, keysBefore(deps));
}

/** Returns since when the oldest row that the signer should know of waits, for metrics; null when none does. */
export function findOldestUnreportedDestination({ db }: Pick<Deps, "db">): Promise<Date | null> {
  return findOldestUnreported(db, { repeatAfterMs: REPEAT_KEYS_MS + LATE_KEYS_MS });
}

/**
 * Reports to the signer which destinations live merchants have, ask for and have left, what operators and merchants have signed about
 * them, and the merchants' approval keys, new ones and revoked ones. The signer's own waiting period begins with the report. One worker
 * reports at a time, so that an older report never follows a newer one; one that did because its worker hung is corrected by another
 * report. While the signer does not answer, the rows stay and are reported later. A row that the signer cannot read is marked like the
 * others and left out, so that it does not keep them back.
 */
export async function reportDestinations(deps: Deps): Promise<void> {
  let changes: UnreportedChange[] = [];
  const reporting = deps.db.transaction().execute(async (db) => {
    if (!(await lockReports(db))) return;
    changes = await listUnreportedChanges(db, CHANGES);
    const rows = await listUnreportedStatements(db, LIMIT);
    const keys = await listUnreportedKeys(db, { before: keysBefore(deps), limit: LIMIT });
    const isReadable = ({ text, signer, signature }: (typeof rows)[number]) =>
      statement.safeParse({ text, signer, signature }).success;
    const [statements, unreadable] = [rows.filter(isReadable), rows.filter((row) => !isReadable(row))];
    const destinations = readDestinations(deps, changes);
    const reported = {
      destinations,
      approvalKeys: readKeys(
        deps,
        keys.filter((key) => key.revoked_at === null),
      ),
      revokedKeys: readKeys(
        deps,
        keys.filter((key) => key.revoked_at !== null),
      ),
    };
    if (statements.length + Object.values(reported).flat().length > 0) {
      const answer = await deps.signer.claimDestinations({
        ...reported,
        statements: statements.map(({ text, signer, signature }) => ({ text, signer, signature })),
      });
      if (!answer) return;
      const outcomes = statements.map(({ id, subject, signer }, index) => {
        const { ok = false, detail = "no answer" } = answer.statements[index] ?? {};
        deps.log.info({ change: subject, by: signer, ok, detail }, "signer has read a statement");
        return { id, outcome: ok ? detail : `refused: ${detail}` };
      });
      await recordOutcomes(db, outcomes, deps.now());
    }
    for (const { id } of unreadable)
      deps.log.error({ statement: id }, "statement is left out of the report to the signer: it is unreadable");
    await recordOutcomes(
      db,
      unreadable.map(({ id }) => ({ id, outcome: "refused: unreadable" })),
      deps.now(),
    );
    await markKeysReported(db, keys, deps.now());
    await markReported(db, changes, deps.now());
  });
  await reporting.catch(async (error: unknown) => {
    // Postgres ends the transaction of a worker that hangs. Another worker may have reported newer rows before this report arrived.
    await markUnreported(deps.db, changes);
    throw error;
  });
}

/** Returns the destinations of changes of live merchants, without those that the signer cannot read. */
function readDestinations({ log }: Pick<Deps, "log">, changes: readonly UnreportedChange[]) {
  return changes.flatMap(({ id, mode, merchant_id: merchantId, asset, ...accounts }) =>
    (["applied", "requested", "past"] as const).flatMap((state) => {
      const account = parseAccountId(accounts[state] ?? "");
      if (mode !== "live" || !account) return [];
      const { data } = destination.safeParse({ merchantId, asset, receiver: account.address, state });
      if (!data) log.error({ change: id }, "change is left out of the report to the signer: it is unreadable");
      return data ?? [];
    }),
  );
}

/** Returns approval keys of live merchants, without those that the signer cannot read. */
function readKeys({ log }: Pick<Deps, "log">, keys: readonly UnreportedKey[]) {
  return keys.flatMap(({ mode, merchant_id: merchantId, public_key: publicKey }) => {
    if (mode !== "live") return [];
    const { data } = approvalKey.safeParse({ merchantId, publicKey });
    if (!data)
      log.error({ merchant: merchantId }, "approval key is left out of the report to the signer: it is unreadable");
    return data ?? [];
  });
}
