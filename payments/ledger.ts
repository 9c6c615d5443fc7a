import { nativeAsset } from "../chains/caip.ts";
import type { Chain } from "../chains/open.ts";
import type { DustRow } from "../db/dust.ts";
import type { Group } from "../db/ledger.ts";
import type { StraySighting } from "../db/sightings.ts";
import type { SpentTransaction } from "../db/transactions.ts";
import type { ConfirmedTransfer } from "../db/transfers.ts";
import type { BookedRent } from "../transfers/solana/rents.ts";

/** The accounts of the ledger. Assets we hold are debits, what we owe is a credit. */
export const accounts = {
  /** What our receiving account holds. */
  treasury: "treasury",
  /** What we owe a merchant. */
  payable: (merchantId: string) => `payable:${merchantId}`,
  /** What has come in one asset and is owed in another: the operator's, who moves stock between them. */
  exchange: "exchange",
  /** What the operator has taken of payments. */
  fees: "fees",
  /** Payouts and refunds that have left a merchant's balance and not yet arrived. */
  inTransit: "in_transit",
  /** Money that arrived and belongs to nobody yet. */
  exceptions: "exceptions",
  /** What one of our lanes has of its chain's native asset; `address` is the lane's. */
  lane: (address: string) => `lane:${address}`,
  /** What our transactions have cost. */
  gasSpent: "gas_spent",
  /** What was lost, or found and kept, by an operator's word. */
  losses: "losses",
  /** What accounts on Solana have to hold, which we have made and paid for. */
  rent: "rent",
  /** What the operator has put in, and not taken out again. */
  capital: "operator_capital",
} as const;

type Movement = Pick<
  ConfirmedTransfer,
  "id" | "asset" | "amount" | "chain" | "block_number" | "block_hash" | "tx_hash" | "log_index"
>;

/** Two entries that cancel: the debited account has more of what it holds, or owes less of what it owes. */
const doubleEntry = (of: { debit: string; credit: string; asset: string; amount: bigint }): Group["entries"] => [
  { account: of.debit, asset: of.asset, amount: of.amount },
  { account: of.credit, asset: of.asset, amount: -of.amount },
];

type Place = Pick<Movement, "chain" | "block_number" | "block_hash" | "tx_hash" | "log_index">;

/**
 * A buyer's money has arrived: the treasury holds it, the merchant is owed it, less the operator's fee; where it is owed
 * in another asset, through the exchange accounts of both.
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

/** A buyer's money has arrived at its merchant's own account: what is owed for it is on its way no longer than it takes. */
export function directPaymentGroup(transfer: Movement, merchantId: string): Group {
  const { asset, amount } = transfer;
  return {
    kind: "payment",
    subject: transfer.id,
    onChain: placeOf(transfer),
    entries: doubleEntry({ debit: accounts.inTransit, credit: accounts.payable(merchantId), asset, amount }),
  };
}

/** A buyer's money has arrived for a payment that does not take it any more. */
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
 * A movement of the treasury's that no transfer of ours stands for: what came belongs to nobody yet, what went is
 * missed there. Undefined for one from the treasury to itself.
 */
export function strayGroup(chain: Chain, sighting: StraySighting): Group | undefined {
  const { token, payer, receiver } = sighting;
  if (payer === receiver) return undefined;
  const asset = `${chain.chain}/${chain.family === "evm" ? "erc20" : "token"}:${token}`;
  const amount = receiver === chain.treasury ? sighting.amount : -sighting.amount;
  return {
    kind: "stray",
    subject: `${chain.chain}/${placeName(chain, sighting)}/${sighting.log_index}`,
    onChain: placeOf(sighting),
    entries: doubleEntry({ debit: accounts.treasury, credit: accounts.exceptions, asset, amount }),
  };
}

/** What came unmatched in one day by deposits below the asset's dust amount: it belongs to nobody yet, as one sum. */
export function dustGroup({ chain, asset, day, amount, transfers, last_block }: DustRow): Group {
  return {
    kind: "dust",
    subject: `${asset}/${day}`,
    note: `${transfers} small deposits of ${day}`,
    onChain: { chain, block_number: last_block, block_hash: null, tx_hash: null, log_index: null },
    entries: doubleEntry({ debit: accounts.treasury, credit: accounts.exceptions, asset, amount }),
  };
}

/** A transaction of ours is final: its lane has paid for it. */
export function gasGroup(spent: SpentTransaction): Group {
  const { chain, hash, block_number, block_hash, fee } = spent;
  const asset = nativeAsset(chain);
  return {
    kind: "gas",
    subject: `${chain}/${hash}`,
    onChain: { chain, block_number, block_hash, tx_hash: hash, log_index: null },
    entries: doubleEntry({ debit: accounts.gasSpent, credit: accounts.lane(spent.address), asset, amount: fee }),
  };
}

/** What a log's or a movement's number is counted in. */
function placeName(chain: Chain, { block_hash, tx_hash }: Pick<StraySighting, "block_hash" | "tx_hash">): string {
  return chain.family === "evm" ? block_hash : tx_hash;
}

/**
 * A lane has paid for accounts that have to hold something, and hold it from now on; or it got back what closed ones held.
 * What strangers had sent to those is the operator's.
 */
export function rentGroup(rent: BookedRent): Group {
  const { chain, address, hash, slot, lamports, given } = rent;
  const asset = nativeAsset(chain);
  const entries = [
    { account: accounts.rent, asset, amount: lamports + given },
    { account: accounts.lane(address), asset, amount: -lamports },
    { account: accounts.capital, asset, amount: -given },
  ];
  return {
    kind: "rent",
    subject: `${chain}/${hash}`,
    onChain: { chain, block_number: slot, block_hash: String(slot), tx_hash: hash, log_index: null },
    entries: entries.filter(({ amount }) => amount !== 0n),
  };
}

/** A lane was found to have more native money than the books say: the operator has put it in. */
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
    onChain: { chain, block_number: block, block_hash: null, tx_hash: null, log_index: null },
    entries: [
      { account, asset, amount: difference },
      { account: accounts.capital, asset, amount: -difference },
    ],
  };
}

/** A payout was begun: what was owed is on its way. */
export function settlementBegunGroup(settlement: {
  id: string;
  asset: string;
  amount: bigint;
  merchantId: string;
}): Group {
  const { asset, amount } = settlement;
  return {
    kind: "settlement_begun",
    subject: settlement.id,
    entries: doubleEntry({ debit: accounts.payable(settlement.merchantId), credit: accounts.inTransit, asset, amount }),
  };
}

/** A payout has arrived: it is on its way no more, and the treasury holds less. */
export function settlementPaidGroup(transfer: Movement): Group {
  const { asset, amount } = transfer;
  return {
    kind: "settlement_paid",
    subject: transfer.id,
    onChain: placeOf(transfer),
    entries: doubleEntry({ debit: accounts.inTransit, credit: accounts.treasury, asset, amount }),
  };
}

/** A refund of a payment was begun: its merchant is owed less, and the money is on its way. */
export function refundBegunGroup(refund: {
  id: string;
  asset: string;
  amount: bigint;
  merchantId: string;
  drawn: { asset: string; amount: bigint };
}): Group {
  const { asset, amount, drawn } = refund;
  const isConverted = drawn.asset !== asset;
  return {
    kind: "refund_begun",
    subject: refund.id,
    entries: [
      { account: accounts.payable(refund.merchantId), ...drawn },
      ...(isConverted
        ? [
            { account: accounts.exchange, asset: drawn.asset, amount: -drawn.amount },
            { account: accounts.exchange, asset, amount },
          ]
        : []),
      { account: accounts.inTransit, asset, amount: -amount },
    ],
  };
}

/**
 * A payout that has begun turned out to come to more (`by` is positive) or to less: so much more, or less, of what its
 * merchant is owed is on its way.
 */
export function settlementChangedGroup(change: { id: string; asset: string; merchantId: string; by: bigint }): Group {
  return { ...settlementBegunGroup({ ...change, amount: change.by }), kind: "settlement_changed" };
}

/** A payout moved more than the rows owe: the treasury holds less, and nobody has said why. */
export function overpaidGroup(transfer: { id: string; asset: string }, movement: Place, amount: bigint): Group {
  const { id, asset } = transfer;
  return {
    kind: "overpaid",
    subject: id,
    onChain: placeOf(movement),
    entries: doubleEntry({ debit: accounts.exceptions, credit: accounts.treasury, asset, amount }),
  };
}

/** A refund that has begun turned out to come to less: so much less is on its way, and its merchant is owed it again. */
export function refundLessenedGroup(refund: {
  id: string;
  asset: string;
  amount: bigint;
  merchantId: string;
  back: { asset: string; amount: bigint };
}): Group {
  const { back, ...less } = refund;
  const group = refundBegunGroup({ ...less, drawn: back });
  const entries = group.entries.map((entry) => ({ ...entry, amount: -entry.amount }));
  return { ...group, kind: "refund_lessened", entries };
}

/** A refund has arrived: it is on its way no more, and the treasury holds less. */
export function refundPaidGroup(transfer: Movement): Group {
  return { ...settlementPaidGroup(transfer), kind: "refund_paid" };
}

function placeOf({ chain, block_number, block_hash, tx_hash, log_index }: Place) {
  return { chain, block_number, block_hash, tx_hash, log_index };
}
