import { findTokenAccount, tokenProgramIds } from "../../chains/solana/build-payment.ts";
import { type Account, keepCreated, readAccounts } from "../../chains/solana/cluster-state.ts";
import { readTokenAccount, validateDestinationAccount } from "../../chains/solana/mints.ts";
import { getSolanaToken, type SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { listCreatedAccounts } from "../../db/queries/created-accounts.ts";
import { holdTransfer, type TransferRow } from "../../db/queries/transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** A transfer of the treasury. `makeAccount` is true when it must create the receiver's token account first. */
export type ReadyPayout = { row: TransferRow; makeAccount: boolean };

const programs = new Set(Object.values(tokenProgramIds));

/**
 * Checks the accounts that receive payouts. A missing token account is created at our expense, once: a receiver that closes
 * it to take its rent gets no second one. The cold address is the operator's own, and gets one each time. Holds payouts whose
 * account cannot receive them, and returns the others.
 */
export async function prepareReceivers(
  deps: TransferDeps,
  chain: SolanaChain,
  rows: readonly TransferRow[],
): Promise<ReadyPayout[]> {
  const places = rows.map((row) => {
    const { token, program } = getSolanaToken(chain, row.asset);
    return findTokenAccount(row.receiver, token, program);
  });
  const owners = rows.map(({ receiver }) => receiver);
  const found = await readAccounts(chain, [...places, ...owners]);
  const made = await listCreatedAccounts(deps.db, { chain: chain.chain, addresses: places });
  const ready: ReadyPayout[] = [];
  for (const [index, row] of rows.entries()) {
    const place = keepCreated(found[index]);
    const error = place
      ? validateAccount(row, place)
      : validateOwner(found[rows.length + index], row.purpose !== "cold" && made.has(places[index] ?? ""));
    if (error) await holdPayout(deps, row, error);
    else ready.push({ row, makeAccount: place === undefined });
  }
  return ready;
}

function validateAccount(row: TransferRow, place: Account): string | undefined {
  const account = readTokenAccount(place.data);
  const wanted = { mint: row.token, owner: row.receiver };
  return account ? validateDestinationAccount(account, wanted) : "the receiver's token account is not a token account";
}

function validateOwner(owner: Account | undefined, wasMade: boolean): string | undefined {
  if (owner && programs.has(owner.owner)) return "the receiver is a token account or a mint, not a wallet";
  return wasMade ? "the receiver has closed the token account that was created for it" : undefined;
}

/** Holds a payout for a retry. The alert on old payouts notifies operators. */
export async function holdPayout(deps: TransferDeps, row: TransferRow, error: string): Promise<void> {
  deps.log.warn({ transfer: row.id, chain: row.chain, error }, "payout would fail now and is held for a retry");
  await holdTransfer(deps.db, { id: row.id, error, now: deps.now() });
}
