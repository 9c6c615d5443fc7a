import { type Hex, hexToBytes } from "viem";
import { parseAccountId, parseAssetId } from "../chains/caip.ts";
import { deriveNonce, hashAuthorization } from "../chains/evm/eip3009.ts";
import type { EvmKeys } from "../chains/evm/open.ts";
import { getChain } from "../chains/open.ts";
import { findReachedHead } from "../db/cursors.ts";
import { debitMerchant, insertGroups } from "../db/ledger.ts";
import { moveRows } from "../db/moves.ts";
import { findSettlement } from "../db/settlements.ts";
import { insertTransfers } from "../db/transfers.ts";
import { toAuthorization } from "../transfers/authorization.ts";
import type { PaymentDeps } from "./deps.ts";
import { newId } from "./ids.ts";
import { settlementBegunGroup } from "./ledger.ts";

/**
 * Unix seconds, the year 2100. A payout's authorization does not run out: it can only ever do what is owed, once, and
 * so never has to be signed a second time.
 */
const NEVER_OUT = 4_102_444_800;
/** The treasury signs nothing while the watcher is further behind than this, milliseconds. */
const WATCH_FRESH_MS = 60_000;
/** After this the sweep rings again for a payout that no lane has taken, milliseconds. */
const RING_AGAIN_MS = 2_000;

/** What became of a settle job: begun now or before, or why it has to wait. */
export type SettleOutcome = "begun" | "watcher_behind" | "no_destination" | "balance_short";

/**
 * Begins a payout: the treasury signs one authorization (EIP-3009) to the merchant's destination, whose nonce names the
 * settlement, and what is owed moves to in transit, all in one transaction. The chain refuses a second one.
 */
export async function beginSettlement(
  deps: PaymentDeps & { keys: ReadonlyMap<string, EvmKeys> },
  settlementId: string,
): Promise<SettleOutcome> {
  const settlement = await findSettlement(deps.db, settlementId);
  if (settlement?.state !== "due") return "begun";
  const asset = parseAssetId(settlement.asset);
  if (!asset) throw new Error(`settlement ${settlementId} is in ${settlement.asset}, which is no asset`);
  const chain = getChain(deps.chains, asset.chain);
  const token = chain.tokens.get(settlement.asset);
  const signer = deps.keys.get(asset.chain)?.treasury;
  if (!token || !signer) throw new Error(`${settlement.asset} is not in the networks file, or its treasury has no key`);
  const destination = parseAccountId(settlement.registered ?? "");
  if (!destination) return "no_destination";
  // After a restore the rows may know less than the chain: wait until the watcher has told them everything.
  const reached = await findReachedHead(deps.db, asset.chain);
  if (!reached || deps.now().getTime() - reached.getTime() > WATCH_FRESH_MS) return "watcher_behind";

  const { merchant_id: merchantId, amount, number } = settlement;
  const row = {
    id: newId("trf"),
    purpose: "settlement" as const,
    payment_id: null,
    settlement_id: settlementId,
    chain: asset.chain,
    asset: settlement.asset,
    token: token.token,
    payer: chain.treasury,
    receiver: destination.address.toLowerCase(),
    amount,
    authorization_nonce: deriveNonce(deps.networks.deployment, [
      "settlement",
      merchantId,
      settlement.asset,
      String(number),
    ]),
    valid_before: NEVER_OUT,
    lane_id: null,
    lane_nonce: null,
    hold_until: null,
    last_trouble: null,
    due_at: new Date(deps.now().getTime() + RING_AGAIN_MS),
  };
  const signature: Hex = await signer.signDigest(hashAuthorization(token.separator, toAuthorization(row)));
  const begun = await deps.db
    .transaction()
    .execute(async (db): Promise<SettleOutcome | "elsewhere"> => {
      const at = deps.now();
      const set = { destination: settlement.registered, due_at: null };
      const moved = await moveRows(db, "settlement", { ids: [settlementId], from: "due", to: "paying", at, set });
      if (moved.length === 0) return "elsewhere";
      if (!(await debitMerchant(db, { merchantId, asset: settlement.asset, amount }))) throw new BalanceShort();
      await insertGroups(
        db,
        [settlementBegunGroup({ id: settlementId, asset: settlement.asset, amount, merchantId })],
        at,
      );
      await insertTransfers(db, [{ ...row, signature: Buffer.from(hexToBytes(signature)) }], at);
      return "begun";
    })
    .catch((error: unknown): SettleOutcome => {
      if (error instanceof BalanceShort) return "balance_short";
      throw error;
    });
  if (begun === "balance_short") return begun;
  if (begun === "begun") {
    deps.metrics.settlementMoves.inc({ mode: settlement.mode, from: "due", to: "paying" });
    await deps.ring("relay-permit", [{ data: { transferId: row.id } }]);
  }
  return "begun";
}

/** Undoes the transaction of a payout that the merchant's balance does not cover. */
class BalanceShort extends Error {
  override readonly name = "BalanceShort";
}
