import { findDestinationFault, readTokenAccount } from "../../chains/solana/mints.ts";
import { getSolanaToken, type SolanaChain } from "../../chains/solana/open.ts";
import { findTokenAccount, tokenPrograms } from "../../chains/solana/payment.ts";
import { type Account, readAccounts } from "../../chains/solana/reads.ts";
import { listMade } from "../../db/made-accounts.ts";
import { holdTransfer, type TransferRow } from "../../db/transfers.ts";
import type { TransferDeps } from "../deps.ts";

/** A transfer of the treasury's, and whether its receiver's token account is to be made first. */
export type Ready = { row: TransferRow; makeAccount: boolean };

const programs = new Set(Object.values(tokenPrograms).map((program) => program.toBase58()));

/**
 * Looks at the accounts that payouts go to. A token account that is missing is made at our expense, once: whoever closes
 * it to take its rent is not made another one. What cannot be paid into is held, and the others do not wait for it.
 */
export async function prepareReceivers(
  deps: TransferDeps,
  chain: SolanaChain,
  rows: readonly TransferRow[],
): Promise<Ready[]> {
  const places = rows.map((row) => {
    const { token, program } = getSolanaToken(chain, row.asset);
    return findTokenAccount(row.receiver, token, program);
  });
  const owners = rows.map(({ receiver }) => receiver);
  const found = await readAccounts(chain, [...places, ...owners]);
  const made = await listMade(deps.db, { chain: chain.chain, addresses: places });
  const ready: Ready[] = [];
  for (const [index, row] of rows.entries()) {
    const place = found[index];
    const fault = place
      ? findFault(row, place)
      : findMakingFault(found[rows.length + index], made.has(places[index] ?? ""));
    if (fault) await holdPayout(deps, row, fault);
    else ready.push({ row, makeAccount: place === undefined });
  }
  return ready;
}

function findFault(row: TransferRow, place: Account): string | undefined {
  const account = readTokenAccount(place.data);
  const wanted = { mint: row.token, owner: row.receiver };
  return account ? findDestinationFault(account, wanted) : "the receiver's token account is none";
}

function findMakingFault(owner: Account | undefined, wasMade: boolean): string | undefined {
  if (owner && programs.has(owner.owner)) return "the receiver is a token account or a mint, not a wallet";
  return wasMade ? "the receiver has closed the token account that was made for it" : undefined;
}

/** Keeps a payout until a later try; people are told by the alert on payouts that take long. */
export async function holdPayout(deps: TransferDeps, row: TransferRow, trouble: string): Promise<void> {
  deps.log.warn({ transfer: row.id, chain: row.chain, trouble }, "a payout would fail now; it is tried again");
  await holdTransfer(deps.db, { id: row.id, trouble, now: deps.now() });
}
