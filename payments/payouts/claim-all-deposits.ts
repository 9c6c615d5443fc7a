import { type DepositRow, listAllDeposits, listAssignedDeposits } from "../../db/queries/deposits.ts";
import type { Db } from "../../db/tables.ts";
import { MAX_DEPOSITS } from "../../signer/protocol.ts";
import type { RefusalReason } from "../../signer/refusals.ts";
import type { TreasurySigner } from "../../signer/treasury-signer.ts";
import { toClaim } from "./request-payouts.ts";

/** The number of deposits that the signer has verified, and of those that it refuses, by reason. */
type ClaimedDeposits = { verified: number; refused: Partial<Record<RefusalReason, number>> };

/**
 * Claims the deposits of every payment, and the exceptions that operators have assigned to payments, for a signer whose
 * records were lost or whose treasury will be replaced. Deposits that it has cost nothing.
 */
export async function claimAllDeposits({ db, signer }: { db: Db; signer: TreasurySigner }): Promise<ClaimedDeposits> {
  const claimed: ClaimedDeposits = { verified: 0, refused: {} };
  for await (const page of readPages(db))
    for (const result of await signer.claimDeposits(page.map(toClaim)))
      if (result.ok) claimed.verified += 1;
      else claimed.refused[result.reason] = (claimed.refused[result.reason] ?? 0) + 1;
  return claimed;
}

async function* readPages(db: Db): AsyncGenerator<DepositRow[]> {
  const limit = MAX_DEPOSITS;
  for (let page = await listAllDeposits(db, { after: "", limit }), last = page.at(-1); last; last = page.at(-1)) {
    yield page;
    page = await listAllDeposits(db, { after: last.payment_id, limit });
  }
  for (let page = await listAssignedDeposits(db, { after: 0, limit }), last = page.at(-1); last; last = page.at(-1)) {
    yield page;
    page = await listAssignedDeposits(db, { after: last.resolution_id, limit });
  }
}
