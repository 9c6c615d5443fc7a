import { listAllDeposits } from "../../db/queries/deposits.ts";
import type { Db } from "../../db/tables.ts";
import { MAX_DEPOSITS } from "../../signer/protocol.ts";
import type { RefusalReason } from "../../signer/refusals.ts";
import type { TreasurySigner } from "../../signer/treasury-signer.ts";
import { toClaim } from "./request-payouts.ts";

/** The number of deposits that the signer has verified, and of those that it refuses, by reason. */
type ClaimedDeposits = { verified: number; refused: Partial<Record<RefusalReason, number>> };

/** Claims the deposits of every payment, for a signer whose records were lost. Deposits that it has cost nothing. */
export async function claimAllDeposits({ db, signer }: { db: Db; signer: TreasurySigner }): Promise<ClaimedDeposits> {
  const claimed: ClaimedDeposits = { verified: 0, refused: {} };
  for (let after = ""; ; ) {
    const page = await listAllDeposits(db, { after, limit: MAX_DEPOSITS });
    const results = page.length > 0 ? await signer.claimDeposits(page.map(toClaim)) : [];
    for (const result of results)
      if (result.ok) claimed.verified += 1;
      else claimed.refused[result.reason] = (claimed.refused[result.reason] ?? 0) + 1;
    const last = page.at(-1);
    if (!last || page.length < MAX_DEPOSITS) return claimed;
    after = last.payment_id;
  }
}
