import { isFresh } from "../../chains/cache-age.ts";
import { readAccountsFromEach, readBlockhash } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { isMarkerOf } from "../../chains/solana/payout-markers.ts";
import { buildMarkerClosing } from "../../chains/solana/treasury-transactions.ts";
import { firstSignature } from "../../chains/solana/wire-format.ts";
import {
  type ClosableMarker,
  deleteClosedMarkers,
  listClosable,
  recordClosing,
} from "../../db/queries/payout-markers.ts";
import { MAX_MARKERS } from "../../signer/solana/transaction-protocol.ts";
import { findTreasuryEpoch } from "../caught-up.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { broadcastStored } from "./broadcast-transactions.ts";
import { REQUIRED_ENDPOINTS } from "./list-agreement.ts";
import type { BookRents } from "./rents.ts";
import { signWith, withTreasurySignature } from "./sign-own-transaction.ts";
import { type Signing, storeSignings } from "./store-transactions.ts";

const DAY_MS = 86_400_000;
/** How long the signer is not asked again after it refused to close markers, milliseconds. */
const REFUSED_MS = 10 * 60_000;

/** When the signer refused last, and the newest marker that it refused: the next request begins behind it. */
const refusals = new WeakMap<SolanaChain, { at: number; after: ClosableMarker | undefined }>();

/**
 * Closes the old payout markers that the signer allows, with one transaction. Their rent goes to the first relayer. It is booked
 * when the transaction is final. Returns the number of markers that the transaction closes.
 */
export async function closeOldMarkers(
  deps: TransferDeps,
  chain: SolanaChain,
  args: { slot: number; book: BookRents },
): Promise<number> {
  const now = deps.now().getTime();
  const refused = refusals.get(chain);
  if (refused && isFresh(refused.at, now, REFUSED_MS)) return 0;
  const madeBefore = new Date(now - chain.network.payoutMarkerDays * DAY_MS);
  const page = { chain: chain.chain, madeBefore, limit: MAX_MARKERS, after: refused?.after };
  const closable = await listClosable(deps.db, page);
  const last = closable.at(-1);
  // After the newest one, the oldest are asked for again.
  if (closable.length < MAX_MARKERS) refusals.delete(chain);
  if (!last) return 0;
  const epoch = await findTreasuryEpoch(deps, chain.chain);
  if (epoch === undefined) return 0;
  const { markers, gone } = await findMarkers(chain, closable);
  if (gone.length > 0) await forgetClosed(deps, chain, { ...args, addresses: gone });
  if (markers.length === 0) return 0;
  const [feePayer = ""] = chain.lanes;
  const relayer = deps.solanaKeys.get(chain.chain)?.lanes.get(feePayer);
  if (!relayer) throw new Error(`${chain.chain} has no keys here`);
  const { blockhash, lastValidHeight } = await readBlockhash(chain);
  const signed = await deps.signer.signMarkerClosing({ chain: chain.chain, feePayer, blockhash, markers });
  if (!signed.ok) {
    const { reason, detail } = signed;
    const isLastPage = closable.length < MAX_MARKERS;
    refusals.set(chain, { at: now, after: isLastPage ? undefined : last });
    deps.log.warn({ chain: chain.chain, reason, detail }, "the signer does not close markers of old payouts now");
    return 0;
  }
  const { addresses: closed } = signed;
  const closing = { feePayer, blockhash, markers: markers.filter(({ address }) => closed.includes(address)) };
  const unsigned = buildMarkerClosing(chain, closing);
  const bytes = await signWith(withTreasurySignature(unsigned, chain.treasury, signed.signature), relayer);
  const signing: Signing = {
    lane: feePayer,
    bytes,
    units: 0,
    unitPrice: 0n,
    expires: { lastValidHeight },
    transfers: [],
  };
  const row = { chain: chain.chain, addresses: closed, hash: firstSignature(bytes) };
  const stored = await storeSignings(deps, chain, [signing], epoch, (db) => recordClosing(db, row));
  await broadcastStored(deps, chain, stored);
  if (stored.length === 0) return 0;
  deps.log.info({ chain: chain.chain, markers: closed.length }, "closing markers of old payouts");
  return closed.length;
}

/**
 * Returns the markers of the treasury that an endpoint shows, and the addresses where two endpoints, or the only one, show none in the
 * slot of the payout or a later one. A marker that is forgotten by mistake keeps its rent for ever, so one endpoint's word does not
 * suffice, nor an old state.
 */
async function findMarkers(chain: SolanaChain, closable: readonly ClosableMarker[]) {
  const addresses = closable.map(({ address }) => address);
  const shown = await readAccountsFromEach(chain, addresses, "finalized");
  const required = Math.min(REQUIRED_ENDPOINTS, chain.network.rpc.length);
  const found = closable.map(({ address, slot: createdIn }, index) => {
    const answers = shown.map(({ slot, accounts }) => ({ slot, account: accounts[index] }));
    const account = answers.map((one) => one.account).find((one) => isMarkerOf(one, chain.treasury));
    const lacking = answers.filter((one) => one.slot >= createdIn && !isMarkerOf(one.account, chain.treasury));
    return { address, account, isGone: lacking.length >= required };
  });
  return {
    markers: found.flatMap(({ address, account, isGone }) =>
      account && !isGone ? [{ address, lamports: account.lamports }] : [],
    ),
    gone: found.flatMap(({ address, isGone }) => (isGone ? [address] : [])),
  };
}

/**
 * Deletes markers that no longer exist on the chain, or that belong to the treasury before this one. A transaction that the
 * database lost, or a wallet with the former treasury's key, sends their rent to the relayer. It is booked as capital when it
 * is found there.
 */
async function forgetClosed(
  deps: TransferDeps,
  chain: SolanaChain,
  { addresses, slot, book }: { addresses: readonly string[]; slot: number; book: BookRents },
): Promise<void> {
  const [address = ""] = chain.lanes;
  for (const closed of addresses)
    await deps.db.transaction().execute(async (db) => {
      const paid = await deleteClosedMarkers(db, { chain: chain.chain, addresses: [closed] });
      const place = { chain: chain.chain, address, hash: closed, slot };
      const accounts = { createdAccounts: [], createdMarkers: [], closedMarkers: [closed] };
      await book(db, [{ ...place, lamports: 0n, foreignLamports: -paid, ...accounts }]);
    });
}
