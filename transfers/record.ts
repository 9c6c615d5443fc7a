import type { Hex } from "viem";
import type { SeenTransfer } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { moveRows } from "../db/moves.ts";
import { insertSightings } from "../db/sightings.ts";
import type { Db } from "../db/tables.ts";
import { markIncluded } from "../db/transactions.ts";
import { listByAuthorizations, listCarried, type TransferRow, uncarryTransfers } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";
import type { Reading } from "./reading.ts";

/**
 * Writes down what blocks say, in the transaction that moves the cursor onto the last of them: our transactions are
 * included, transfers are proved by their pair of logs (whoever sent them), and members of a batch that left no pair
 * are taken out of it to be tried alone. A receipt alone proves nothing about a transfer.
 * Gives what counts it all, to be called after the commit.
 */
export async function recordBlocks(db: Db, deps: TransferDeps, chain: EvmChain, reading: Reading): Promise<() => void> {
  const { seen, landed } = reading;
  const touching = seen.filter((log) => isOurs(chain, log) || log.authorizationNonce !== null);
  const nonces = touching.flatMap((log) => log.authorizationNonce ?? []);
  const known = await listByAuthorizations(db, { chain: chain.chain, nonces });
  const claims = touching.flatMap((log) => {
    const transfer = known.find((row) => isProof(log, row));
    // Movements between strangers are nobody's business here.
    return transfer || isOurs(chain, log) ? [{ log, transfer }] : [];
  });
  await insertSightings(
    db,
    claims.map(({ log, transfer }) => toRow(deps, chain, log, transfer)),
  );

  const proved = claims.flatMap(({ transfer }) => transfer ?? []);
  const at = deps.now();
  const set = { due_at: null, hold_until: null, last_trouble: null };
  const included = new Set<string>();
  for (const from of ["carried", "ready"] as const) {
    const ids = proved.filter((row) => row.state === from).map((row) => row.id);
    for (const id of await moveRows(db, "transfer", { ids, from, to: "included", at, set })) included.add(id);
  }
  await markIncluded(
    db,
    landed.map(({ row, receipt }) => ({ ...row, ...receipt })),
  );
  const missing = await listCarried(
    db,
    landed.map(({ row }) => row),
  );
  const reason = "left no trace in its transaction";
  await uncarryTransfers(db, { ids: missing.map(({ id }) => id), reason, now: at });

  return () => {
    const { metrics } = deps;
    for (const { id, purpose, state } of proved)
      if (included.has(id)) metrics.transferMoves.inc({ chain: chain.chain, purpose, from: state, to: "included" });
    for (const { purpose } of missing)
      metrics.transferMoves.inc({ chain: chain.chain, purpose, from: "carried", to: "ready" });
    for (const { row, receipt } of landed) {
      const members = [...proved, ...missing].filter(
        (member) => member.lane_id === row.lane_id && member.lane_nonce === row.nonce,
      );
      metrics.transactions.inc({ chain: chain.chain, state: receipt.reverted ? "reverted" : "included" });
      metrics.gasPerTransfer.observe({ chain: chain.chain }, Number(receipt.gasUsed) / Math.max(1, members.length));
    }
    if (missing.length > 0)
      deps.log.warn(
        { chain: chain.chain, transfers: missing.map(({ id }) => id) },
        `transfers ${reason}; each is tried alone`,
      );
  };
}

/** True for a movement into or out of the treasury. */
export function isOurs(chain: EvmChain, log: Pick<SeenTransfer, "payer" | "receiver">): boolean {
  return log.receiver === chain.treasury || log.payer === chain.treasury;
}

/** True when a log shows exactly this transfer: same token, payer, authorization nonce, receiver and amount. */
export function isProof(
  log: SeenTransfer,
  transfer: Pick<TransferRow, "token" | "payer" | "receiver" | "amount" | "authorization_nonce">,
): boolean {
  return (
    log.authorizationNonce === transfer.authorization_nonce &&
    log.token === transfer.token &&
    log.payer === transfer.payer &&
    log.receiver === transfer.receiver &&
    log.amount === transfer.amount
  );
}

function toRow(deps: TransferDeps, chain: EvmChain, log: SeenTransfer, transfer: TransferRow | undefined) {
  return {
    chain: chain.chain,
    block_hash: log.blockHash,
    block_number: log.blockNumber,
    log_index: log.logIndex,
    tx_hash: log.txHash,
    token: log.token,
    payer: log.payer,
    receiver: log.receiver,
    amount: log.amount,
    authorization_nonce: log.authorizationNonce as Hex | null,
    transfer_id: transfer?.id ?? null,
    seen_at: deps.now(),
  };
}
