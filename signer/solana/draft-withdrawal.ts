import type { Chain } from "../../chains/chain.ts";
import type { UnsignedPayout } from "../../chains/payout-signer.ts";
import { findTokenAccount, tokenProgramIds } from "../../chains/solana/build-payment.ts";
import { countUnits } from "../../chains/solana/build-payouts.ts";
import { type Account, keepCreated, readAccounts } from "../../chains/solana/cluster-state.ts";
import { limitUnits } from "../../chains/solana/compute-budget.ts";
import { readTokenAccount, validateDestinationAccount } from "../../chains/solana/mints.ts";
import { listNonceAddresses, readNonces, readRent } from "../../chains/solana/nonce-accounts.ts";
import { getSolanaToken, type SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { findMarker, isMarker } from "../../chains/solana/payout-markers.ts";
import { chooseUnitPrice } from "../../chains/solana/priority-fees.ts";
import { simulate } from "../../chains/solana/simulate-wire-bytes.ts";
import { buildPayoutTransaction, type PayoutTransaction } from "../../chains/solana/treasury-transactions.ts";
import { chainOfAsset } from "../payout-nonce.ts";
import type { Refused } from "../protocol.ts";
import { listAuthorizedAssets } from "../records.ts";
import { refuse } from "../refuse.ts";
import type { SignerDeps } from "../signer-deps.ts";
import type { Store } from "../store.ts";
import { findClosing, insertTransaction, isNonceRecorded, listTransactions } from "./transaction-records.ts";

/** What the treasury must have for fee and rents, lamports: the marker's, a new token account's, and its own. */
const NEEDED_LAMPORTS = 5_000_000n;

const programs = new Set(Object.values(tokenProgramIds));

/** A withdrawal that the cluster would make now. `slot`: the endpoint had reached it when the nonce had this value. */
export type WithdrawalDraft = {
  chain: SolanaChain;
  payout: UnsignedPayout;
  transaction: PayoutTransaction;
  marker: string;
  slot: number;
};

/**
 * Drafts the transaction that makes a withdrawal, and simulates it. The treasury pays fee and rents, so it alone signs and
 * anybody can send the bytes: neither a worker nor a lane has to run. The withdrawal's marker makes it happen once, whatever
 * nonces it was signed with. Returns the refusal if the cluster would not make it; nothing is recorded then. Returns undefined
 * for chains where the treasury signs payouts. Throws ChainError.
 */
export async function draftWithdrawal(
  { store, deployment, now }: Pick<SignerDeps, "store" | "deployment" | "now">,
  chain: Chain,
  payout: UnsignedPayout,
): Promise<WithdrawalDraft | Refused | undefined> {
  if (chain.namespace !== "solana") return undefined;
  const marker = findMarker(chain.treasury, payout.nonce).address;
  const [made] = await readAccounts(chain, [marker], "finalized");
  const used = findReferenceRefusal(store, { chain, marker, payout });
  if (isMarker(made) || used) return used ?? wasMade();
  const receiver = await readReceiver(chain, payout);
  if ("reason" in receiver) return receiver;
  const places = (await listNonceAddresses(chain, deployment)).map(({ address }) => address);
  const { slot, nonces } = await readNonces(chain, places, "confirmed");
  const at = chooseNonce(store, { chain: chain.chain, marker }, places, nonces);
  if (!at)
    return refuse("withdrawal_failing", "the treasury has no durable nonce account: start a worker to create them");
  const { program } = getSolanaToken(chain, payout.asset);
  const { amount, nonce: memo, receiver: destination } = payout;
  const payouts = [{ destination, amount, memo, ...receiver }];
  const most = countUnits(payouts, program);
  const shared = { asset: payout.asset, feePayer: chain.treasury, ...at, markerRent: await readRent(chain), payouts };
  const draft = { ...shared, budget: { units: most, unitPrice: 0n } };
  const outcome = await simulate(chain, buildPayoutTransaction(chain, draft));
  if (!outcome.ok) return refuse("withdrawal_failing", outcome.reason);
  const units = limitUnits(outcome.units, most);
  const unitPrice = await chooseUnitPrice(chain, units, now().getTime());
  return { chain, payout, transaction: { ...shared, budget: { units, unitPrice } }, marker, slot };
}

const wasMade = () => refuse("withdrawal_failing", "a withdrawal with this reference was made");

/**
 * Returns the refusal of a withdrawal whose marker was closed, or whose reference was used for another asset: the marker is of
 * treasury and reference. Call it again inside the transaction that records the withdrawal, because the store may have changed
 * since the draft.
 */
export function findReferenceRefusal(
  store: Store,
  { chain: { chain, treasury }, marker, payout }: Pick<WithdrawalDraft, "chain" | "marker" | "payout">,
): Refused | undefined {
  if (findClosing(store, { chain, marker })) return wasMade();
  const isOther = (asset: string) => asset !== payout.asset && chainOfAsset(asset) === chain;
  if (!listAuthorizedAssets(store, { nonce: payout.nonce, treasury }).some(isOther)) return undefined;
  return refuse(
    "withdrawal_failing",
    "this reference was used for another asset: a reference is paid once on Solana, choose another one",
  );
}

/** Returns whether the receiver's token account has to be made, or why the receiver or the treasury's SOL is not fit for it. */
async function readReceiver(
  chain: SolanaChain,
  { asset, receiver }: UnsignedPayout,
): Promise<{ makeAccount: boolean } | Refused> {
  const { token: mint, program } = getSolanaToken(chain, asset);
  const places = [findTokenAccount(receiver, mint, program), receiver, chain.treasury];
  const [found, owner, treasury] = await readAccounts(chain, places);
  const place = keepCreated(found);
  if (owner && programs.has(owner.owner))
    return refuse("withdrawal_failing", "the receiver is a token account or a mint, not a wallet");
  const error = place && findAccountError(place, { mint, owner: receiver });
  if (error) return refuse("withdrawal_failing", error);
  const lamports = treasury?.lamports ?? 0n;
  if (lamports < NEEDED_LAMPORTS)
    return refuse(
      "withdrawal_failing",
      `the treasury ${chain.treasury} pays fee and rents, has ${lamports} lamports and needs ${NEEDED_LAMPORTS}: send it SOL`,
    );
  return { makeAccount: place === undefined };
}

function findAccountError(place: Account, wanted: { mint: string; owner: string }): string | undefined {
  const account = readTokenAccount(place.data);
  return account ? validateDestinationAccount(account, wanted) : "the receiver's token account is not a token account";
}

/**
 * Chooses a nonce account: one of which this withdrawal was signed already with the present value, so that it has one
 * transaction; otherwise the last that no recorded transaction uses, because workers use the first. A worker's transaction that
 * loses its nonce is signed again.
 */
function chooseNonce(
  store: Store,
  of: { chain: string; marker: string },
  places: readonly string[],
  nonces: readonly (string | undefined)[],
): { nonceAccount: string; nonce: string } | undefined {
  const present = places.flatMap((nonceAccount, index) => {
    const nonce = nonces[index];
    return nonce === undefined ? [] : [{ nonceAccount, nonce }];
  });
  const signed = listTransactions(store, of);
  const isSigned = (one: { nonceAccount: string; nonce: string }) =>
    signed.some(({ nonceAccount, nonce }) => nonceAccount === one.nonceAccount && nonce === one.nonce);
  const isFree = (one: { nonceAccount: string; nonce: string }) => !isNonceRecorded(store, { chain: of.chain, ...one });
  return present.find(isSigned) ?? present.findLast(isFree) ?? present.at(-1);
}

/** Records the transaction of a withdrawal before it is signed. Call it inside a transaction. */
export function recordWithdrawal(
  store: Store,
  { chain: { chain }, transaction: { nonceAccount, nonce }, marker, slot }: WithdrawalDraft,
  at: Date,
): void {
  insertTransaction(store, { chain, marker, nonceAccount, nonce, slot }, at);
}
