import { nativeAsset, tokenAsset } from "../../chains/canonical-ids.ts";
import type { Chain } from "../../chains/chain.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import type { ConfirmedTransfer } from "../../db/queries/confirmable-transfers.ts";
import type { DustRow } from "../../db/queries/dust.ts";
import type { Group } from "../../db/queries/ledger-groups.ts";
import type { SpentTransaction } from "../../db/queries/transactions.ts";
import type { UnmatchedObservation } from "../../db/queries/unmatched-movements.ts";
import type { BookedRent } from "../../transfers/solana/rents.ts";
import { accounts } from "./ledger-accounts.ts";

/** A transfer and the place of its movement on chain. */
export type Movement = Pick<
  ConfirmedTransfer,
  "id" | "asset" | "amount" | "chain" | "block_number" | "block_id" | "tx_hash" | "log_index"
>;

/** Returns two entries that sum to zero: a debit and a credit of the same amount. */
export const doubleEntry = (of: { debit: string; credit: string; asset: string; amount: bigint }): Group["entries"] => [
  { account: of.debit, asset: of.asset, amount: of.amount },
  { account: of.credit, asset: of.asset, amount: -of.amount },
];

/** Where a movement is on its chain. */
export type Place = Pick<Movement, "chain" | "block_number" | "block_id" | "tx_hash" | "log_index">;

/**
 * Returns the group of a buyer's payment to the treasury. Debits the treasury; credits the merchant and the operator's
 * fee. If the merchant is owed another asset, the amount passes through the exchange accounts of both assets.
 */
export function paymentGroup(
  transfer: Movement,
  {
    merchantId,
    fee = 0n,
    converted,
  }: {
    merchantId: string;
    fee?: bigint;
    converted?: { asset: string; amount: bigint } | undefined;
  },
): Group {
  const { asset, amount } = transfer;
  const payable = accounts.payable(merchantId);
  const taken = fee > 0n ? [{ account: accounts.fees, asset, amount: -fee }] : [];
  return {
    kind: "payment",
    subject: transfer.id,
    onChain: placeOf(transfer),
    entries: [
      { account: accounts.treasury, asset, amount },
      ...(converted
        ? [
            { account: accounts.exchange, asset, amount: fee - amount },
            { account: accounts.exchange, asset: converted.asset, amount: converted.amount },
            { account: payable, asset: converted.asset, amount: -converted.amount },
          ]
        : [{ account: payable, asset, amount: fee - amount }]),
      ...taken,
    ],
  };
}

/**
 * Returns the group of a buyer's payment to the merchant's own account: credited to the merchant against in transit.
 */
export function directPaymentGroup(transfer: Movement, merchantId: string): Group {
  const { asset, amount } = transfer;
  return {
    kind: "payment",
    subject: transfer.id,
    onChain: placeOf(transfer),
    entries: doubleEntry({ debit: accounts.inTransit, credit: accounts.payable(merchantId), asset, amount }),
  };
}

/** Returns the group of a buyer's money whose payment has ended. */
export function exceptionGroup(transfer: Movement): Group {
  const { asset, amount } = transfer;
  return {
    kind: "exception",
    subject: transfer.id,
    onChain: placeOf(transfer),
    entries: doubleEntry({ debit: accounts.treasury, credit: accounts.exceptions, asset, amount }),
  };
}

/**
 * Returns the group of a return that is withdrawn before it begins: its money moves from in transit to exceptions. The group
 * is a new open exception at the place of the same movement, because an exception is closed only once.
 */
export function returnWithdrawnGroup(
  refund: { id: string; exceptionId: number; asset: string; amount: bigint },
  movement: Place,
): Group {
  const { id, exceptionId, asset, amount } = refund;
  return {
    kind: "exception",
    subject: id,
    note: `the return ${id} of exception ${exceptionId} was withdrawn`,
    onChain: placeOf(movement),
    entries: doubleEntry({ debit: accounts.inTransit, credit: accounts.exceptions, asset, amount }),
  };
}

/**
 * Returns the group of an unmatched movement into or out of the treasury, booked against exceptions. Returns undefined
 * for a movement from the treasury to itself, and for one to a merchant who is paid directly.
 */
export function unmatchedGroup(chain: Chain, observation: UnmatchedObservation): Group | undefined {
  const { token, payer, receiver } = observation;
  if (payer === receiver) return undefined;
  if (payer !== chain.treasury && receiver !== chain.treasury) return undefined;
  const asset = tokenAsset(chain.chain, token);
  const scope = getChainDriver(chain.chain).movementScope(observation);
  const amount = receiver === chain.treasury ? observation.amount : -observation.amount;
  return {
    kind: "unmatched",
    subject: `${chain.chain}/${scope}/${observation.log_index}`,
    onChain: placeOf(observation),
    entries: doubleEntry({ debit: accounts.treasury, credit: accounts.exceptions, asset, amount }),
  };
}

/** Returns the group of one day's unmatched deposits below the asset's dust amount, as one sum. */
export function dustGroup({ chain, asset, day, amount, transfers, last_block }: DustRow): Group {
  return {
    kind: "dust",
    subject: `${asset}/${day}`,
    note: `${transfers} small deposits of ${day}`,
    onChain: { chain, block_number: last_block, block_id: null, tx_hash: null, log_index: null },
    entries: doubleEntry({ debit: accounts.treasury, credit: accounts.exceptions, asset, amount }),
  };
}

/** Returns the group of the gas that a lane paid for a final transaction. */
export function gasGroup(spent: SpentTransaction): Group {
  const { chain, hash, block_number, block_id, fee } = spent;
  const asset = nativeAsset(chain);
  return {
    kind: "gas",
    subject: `${chain}/${hash}`,
    onChain: { chain, block_number, block_id, tx_hash: hash, log_index: null },
    entries: doubleEntry({ debit: accounts.gasSpent, credit: accounts.lane(spent.address), asset, amount: fee }),
  };
}

/**
 * Returns the group of the rent that a lane deposited into new Solana accounts, or recovered from closed ones. Lamports
 * that third parties had sent to a closed account are the operator's capital.
 */
export function rentGroup(rent: BookedRent): Group {
  const { chain, address, hash, slot, lamports, foreignLamports } = rent;
  const asset = nativeAsset(chain);
  const entries = [
    { account: accounts.rent, asset, amount: lamports + foreignLamports },
    { account: accounts.lane(address), asset, amount: -lamports },
    { account: accounts.capital, asset, amount: -foreignLamports },
  ];
  return {
    kind: "rent",
    subject: `${chain}/${hash}`,
    onChain: { chain, block_number: slot, block_id: String(slot), tx_hash: hash, log_index: null },
    entries: entries.filter(({ amount }) => amount !== 0n),
  };
}

/** Returns the group of a lane's native balance above the ledger's: the operator has deposited it. */
export function laneDepositGroup(found: {
  chain: string;
  account: string;
  asset: string;
  block: number;
  difference: bigint;
}): Group {
  const { chain, account, asset, block, difference } = found;
  return {
    kind: "lane_deposit",
    subject: `${chain}/${account}/${block}`,
    onChain: { chain, block_number: block, block_id: null, tx_hash: null, log_index: null },
    entries: [
      { account, asset, amount: difference },
      { account: accounts.capital, asset, amount: -difference },
    ],
  };
}

/** Returns the group of native money that left a lane without a transaction of ours: an exception, until an operator explains it. */
export function laneOutflowGroup(found: {
  chain: string;
  account: string;
  asset: string;
  block: number;
  amount: bigint;
}): Group {
  const { chain, account, asset, block, amount } = found;
  return {
    kind: "unmatched",
    subject: `${chain}/${account}/${block}`,
    note: `left ${account} without a transaction of ours`,
    onChain: { chain, block_number: block, block_id: null, tx_hash: null, log_index: null },
    entries: doubleEntry({ debit: accounts.exceptions, credit: account, asset, amount }),
  };
}

/** Returns the group of a transfer of the treasury's excess to the cold address. What it backs stays owed. */
export function coldGroup(transfer: Movement): Group {
  const { asset, amount } = transfer;
  return {
    kind: "cold_moved",
    subject: transfer.id,
    onChain: placeOf(transfer),
    entries: doubleEntry({ debit: accounts.cold, credit: accounts.treasury, asset, amount }),
  };
}

/** Returns the place of a movement, as a group stores it. */
export function placeOf({ chain, block_number, block_id, tx_hash, log_index }: Place) {
  return { chain, block_number, block_id, tx_hash, log_index };
}
