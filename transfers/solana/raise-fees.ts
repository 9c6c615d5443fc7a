import { findTokenAccount } from "../../chains/solana/build-payment.ts";
import type { Payout } from "../../chains/solana/build-payouts.ts";
import type { FinalizedState } from "../../chains/solana/cluster-state.ts";
import { listCreatedAccounts } from "../../chains/solana/created-accounts.ts";
import { readRent } from "../../chains/solana/nonce-accounts.ts";
import type { SolanaChain, SolanaToken } from "../../chains/solana/open-solana-chain.ts";
import { chooseRaisedPrice } from "../../chains/solana/priority-fees.ts";
import { simulate } from "../../chains/solana/simulate-wire-bytes.ts";
import { findTransferIndex, listMemos } from "../../chains/solana/treasury-movements.ts";
import { buildPayoutTransaction, type PayoutTransaction } from "../../chains/solana/treasury-transactions.ts";
import { type ParsedTransaction, parseTransaction } from "../../chains/solana/wire-format.ts";
import type { SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";
import { listAssigned, type TransferRow } from "../../db/queries/transfers.ts";
import { attemptAll } from "../attempt-all.ts";
import { findTreasuryEpoch } from "../caught-up.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { runBesidePasses } from "./beside-passes.ts";
import { broadcastStored } from "./broadcast-transactions.ts";
import { findNonceSlot, limitSlot } from "./expiry-heights.ts";
import { listNewest, listWaiting } from "./replacements.ts";
import { signPayout } from "./sign-payout.ts";
import { type Signing, storeReplacement } from "./store-transactions.ts";
import type { TrackedTransaction } from "./tracked-transaction.ts";

/** Slots after which a payout that is in none is signed again. Leaders take a sufficient price within a few slots. */
const WAIT_SLOTS = 50;

/** States of the transfers that a transaction of payouts makes, or has made in a slot that may have disappeared. */
const OF_TRANSACTION = ["assigned", "included", "confirmed"] as const;

/** The slots in which payouts of each cluster were not signed again, by signature. They are tried again as long afterwards. */
const refusals = new WeakMap<SolanaChain, Map<string, number>>();

/**
 * Signs payouts that were not included for some time again, at a higher price, and broadcasts them. The bytes of a payout do not expire,
 * so one that was signed at a lower price than leaders take now would wait for ever. The new bytes have the same durable nonce and
 * markers: whichever are included, the others are refused. They are stored before they are sent, and the signer counts nothing, because
 * the payouts were authorized before. The price rises up to the network's fee cap. A payment is not signed again: its buyer has
 * signed its price, and it expires. A signer that does not answer delays no pass: the work goes on beside later passes.
 */
export async function raiseFees(
  deps: TransferDeps,
  chain: SolanaChain,
  { tracked, final }: { tracked: readonly TrackedTransaction[]; final: FinalizedState },
): Promise<void> {
  const limited = tracked.map((one) => ({ ...one, slot: limitSlot(one.slot, final) }));
  await beside(chain, () => raiseDue(deps, chain, limited, final));
}

const beside = runBesidePasses<void>();

async function raiseDue(
  deps: TransferDeps,
  chain: SolanaChain,
  tracked: readonly TrackedTransaction[],
  final: FinalizedState,
): Promise<void> {
  const refused = refusals.get(chain) ?? new Map<string, number>();
  const isDue = ({ row, slot }: TrackedTransaction) => {
    const since = Math.max(findNonceSlot(row, final), refused.get(row.hash) ?? 0);
    return row.nonce_account !== null && slot - since >= WAIT_SLOTS;
  };
  const due = listNewest(listWaiting(tracked)).filter(isDue);
  refusals.set(chain, new Map([...refused].filter(([hash]) => tracked.some(({ row }) => row.hash === hash))));
  if (due.length === 0) return;
  const epoch = await findTreasuryEpoch(deps, chain.chain);
  if (epoch === undefined) return;
  await attemptAll(
    due.map((one) => async () => {
      const reason = await raise(deps, chain, one, epoch);
      if (reason === undefined) return;
      refusals.get(chain)?.set(one.row.hash, one.slot);
      deps.log.warn({ chain: chain.chain, tx: one.row.hash, reason }, "payout is not included at its price");
    }),
  );
}

/** Signs, stores and broadcasts one transaction again. Returns why it is not signed again. */
async function raise(
  deps: TransferDeps,
  chain: SolanaChain,
  { row, slot }: TrackedTransaction,
  epoch: string,
): Promise<string | undefined> {
  const transfers = await listAssigned(deps.db, [row], OF_TRANSACTION);
  const transaction = await describe(deps, chain, row, transfers);
  if (typeof transaction === "string") return transaction;
  const outcome = await simulate(chain, buildPayoutTransaction(chain, transaction));
  // A higher fee does not help a relayer without money. A transaction that would fail is included too, and its payouts are then signed anew.
  if (!outcome.ok && outcome.later) return outcome.reason;
  const bytes = await signPayout(deps, chain, transaction);
  if (typeof bytes === "string") return bytes;
  const { feePayer: lane, budget, nonceAccount, nonce } = transaction;
  const signing: Signing = { lane, bytes, ...budget, expires: { nonceAccount, nonce, slot }, transfers };
  if (!(await storeReplacement(deps, chain, { row, signing }, epoch))) return undefined;
  deps.metrics.transactions.inc({ chain: chain.chain, state: "replacing" });
  await broadcastStored(deps, chain, [signing]);
  return undefined;
}

/** Returns a transaction as it was signed, with a higher price, or why there is none. */
async function describe(
  deps: TransferDeps,
  chain: SolanaChain,
  row: SolanaTransactionRow,
  transfers: readonly TransferRow[],
): Promise<PayoutTransaction | string> {
  const parsed = parseTransaction(row.bytes);
  if ("error" in parsed) throw new Error(`transaction ${row.hash} of ours cannot be parsed: ${parsed.error}`);
  const { feePayer, blockhash: nonce } = parsed;
  // The cluster includes one of the transactions with the nonce, so all of them make the same transfers.
  const memos = new Set(listMemos(parsed));
  const isSame = memos.size === transfers.length && transfers.every((one) => memos.has(one.authorization_nonce));
  if (!isSame) return "its payouts are not those that it was signed for";
  const [first] = transfers;
  const token = first && chain.tokens.get(first.asset);
  if (!token) return "the asset of its payouts is not in the networks file";
  if (!deps.solanaKeys.get(chain.chain)?.lanes.has(feePayer)) return "the key of its relayer is not here";
  const units = Number(row.compute_units);
  const unitPrice = await chooseRaisedPrice(chain, { units, unitPrice: row.unit_price }, deps.now().getTime());
  if (unitPrice === undefined) return "it offers the network's maxPriorityFee already";
  const at = { feePayer, nonceAccount: row.nonce_account ?? "", nonce, budget: { units, unitPrice } };
  return {
    asset: token.asset,
    ...at,
    markerRent: await readRent(chain),
    payouts: listPayouts(parsed, token, transfers),
  };
}

/** Returns the payouts of a transaction in their order. */
function listPayouts(parsed: ParsedTransaction, token: SolanaToken, transfers: readonly TransferRow[]): Payout[] {
  const created = listCreatedAccounts(parsed);
  const indexOf = ({ authorization_nonce: memo }: TransferRow) => findTransferIndex(parsed, memo);
  return transfers
    .toSorted((one, other) => indexOf(one) - indexOf(other))
    .map(({ receiver, amount, authorization_nonce: memo }) => {
      const makeAccount = created.includes(findTokenAccount(receiver, token.token, token.program));
      return { destination: receiver, amount, memo, makeAccount };
    });
}
