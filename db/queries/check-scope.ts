import { sql } from "kysely";
import type { Finding } from "../findings.ts";

/** How much of the database a check of the ledger reads. */
export type CheckScope = {
  /** Sums of the days since this one (UTC), which begins at this time. All days when undefined. */
  since: Date | undefined;
  /** Payouts that were paid or booked since this time, and all that are unfinished. All payouts when unset. */
  paidSince?: Date;
};

const beginOf = (time: Date | undefined) => (time ? sql`${time}::timestamptz` : sql`'-infinity'::timestamptz`);

/** SQL: the beginning of the days whose sums a check reads. */
export const sumsSince = ({ since }: CheckScope) => beginOf(since);

/** SQL: the beginning of the payouts that a check reads. */
export const payoutsSince = ({ paidSince }: CheckScope) => beginOf(paidSince);

/**
 * SQL: any of the subjects of the findings that are stored, so that a check reads them until they are repaired, whatever their age. Postgres
 * expects few values of an array that it does not know, and looks them up.
 */
export const anyFound = sql`any(array(select subject from ledger_finding))`;

/** How many rows one statement compares. */
const PAGE = 1_000;

/** Searches rows for findings, some of them in each statement, so that none meets the timeout. */
export async function findInPages(
  rows: readonly { id: string }[],
  find: (ids: readonly string[]) => Promise<Finding[]>,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (let at = 0; at < rows.length; at += PAGE)
    findings.push(...(await find(rows.slice(at, at + PAGE).map(({ id }) => id))));
  return findings;
}
