import { getSolanaChain } from "../../chains/open.ts";
import { readBudget } from "../../chains/solana/budget.ts";
import type { SolanaChain } from "../../chains/solana/open.ts";
import { parseTransaction, withSignature } from "../../chains/solana/transactions.ts";
import type { Purpose } from "../../db/tables.ts";
import { holdTransfer, listReady, type TransferRow } from "../../db/transfers.ts";
import { attemptAll } from "../attempt-all.ts";
import type { SendBooks } from "../books.ts";
import { findReadEpoch } from "../caught-up.ts";
import { type DeclinedBook, decline } from "../decline.ts";
import type { TransferDeps } from "../deps.ts";
import { screenAccounts } from "../screening.ts";
import { submitPayouts } from "./payouts.ts";
import { offerStored, type Signing, storeSignings } from "./store.ts";

/** Transfers submitted in one go. */
const TOGETHER = 100;

/**
 * Submits what is ready on a cluster. Buyers' transactions get the relayer's signature, once: bytes, first signature and
 * last height are stored before anything is sent, and nobody ever signs a second one for the same payment. The
 * treasury's transfers go out by durable nonces (see submitPayouts), and no buyer waits behind them. `more`: there is
 * work left that another call can do now.
 */
export async function submitReady(deps: TransferDeps, chainId: string, books: SendBooks): Promise<"idle" | "more"> {
  const chain = getSolanaChain(deps.chains, chainId);
  const ready = (purposes: readonly Purpose[]) =>
    listReady(deps.db, { chain: chain.chain, kind: "spl", purposes, now: deps.now(), limit: TOGETHER });
  const epoch = await findReadEpoch(deps, chain.chain);
  // While it is not known what the rows have forgotten, nothing is signed, and nothing is ended as never sent.
  if (epoch === undefined) return "idle";
  let isMore = false;
  // What did not go now, for want of a durable nonce or a key, would not go at once either.
  const note = (rows: readonly TransferRow[], went: number) => {
    isMore ||= rows.length === TOGETHER && went > 0;
  };
  await attemptAll([
    async () => {
      const payments = await ready(["payment"]);
      note(payments, await submitPayments(deps, chain, payments, { declined: books.declined, epoch }));
    },
    async () => {
      const payouts = await ready(["settlement", "refund"]);
      note(payouts, await submitPayouts(deps, chain, payouts, books.adopted));
    },
  ]);
  return isMore ? "more" : "idle";
}

/**
 * Signs, stores and sends buyers' transactions; gives how many went. One that cannot be signed is held, alone. Nothing is
 * sent for a payer who is not served.
 */
async function submitPayments(
  deps: TransferDeps,
  chain: SolanaChain,
  payments: readonly TransferRow[],
  { declined, epoch }: { declined: DeclinedBook; epoch: string },
): Promise<number> {
  if (payments.length === 0) return 0;
  const payers = payments.map(({ payer }) => payer);
  const refused = await screenAccounts(deps, chain, payers);
  const signings: Signing[] = [];
  const failing: { row: TransferRow; trouble: string }[] = [];
  for (const row of payments.filter(({ payer }) => !refused.has(payer))) {
    const signing = sign(deps, chain, row);
    if (typeof signing === "string") failing.push({ row, trouble: signing });
    else signings.push(signing);
  }
  const stored = await storeSignings(deps, chain, signings, epoch);
  await attemptAll([
    () => offerStored(deps, chain, stored),
    ...payments.filter(({ payer }) => refused.has(payer)).map((row) => () => decline(deps, row, declined)),
    ...failing.map(({ row, trouble }) => () => {
      deps.log.error({ transfer: row.id, chain: chain.chain, trouble }, "a buyer's transaction is held");
      return holdTransfer(deps.db, { id: row.id, trouble, now: deps.now() });
    }),
  ]);
  return stored.length;
}

/**
 * The buyer's transaction with its fee payer's signature; what was verified before is what is signed. Gives why it cannot
 * be, where it cannot.
 */
function sign(deps: TransferDeps, chain: SolanaChain, row: TransferRow): Signing | string {
  const parsed = parseTransaction(row.signature ?? new Uint8Array());
  const keys = deps.solanaKeys.get(chain.chain);
  const signer = "fault" in parsed ? undefined : keys?.lanes.get(parsed.feePayer);
  if ("fault" in parsed || !signer) return "the transaction names no relayer that we hold";
  return {
    lane: signer.address,
    bytes: withSignature(parsed, signer.address, signer.sign(parsed.message)),
    ...readBudget(parsed),
    dies: { lastHeight: row.valid_before },
    transferIds: [row.id],
  };
}
