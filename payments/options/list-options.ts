import { parseAccountId } from "../../chains/caip.ts";
import { canonicalAddress } from "../../chains/canonical-ids.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { deriveNonce, paymentKey } from "../../chains/natural-key.ts";
import { getChain, getToken } from "../../chains/open-chains.ts";
import {
  findOption,
  insertOptions,
  listNewestOptions,
  type NewOption,
  type OptionRow,
} from "../../db/queries/payment-options.ts";
import { findPaymentWithTerms } from "../../db/queries/payment-terms.ts";
import { findPayment, isReached, type PaymentQuery, type PaymentWithMerchant } from "../../db/queries/payments.ts";
import { recordRequester } from "../../db/queries/requesters.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import { PAYER_BARRED } from "../../transfers/refusal-reasons.ts";
import type { WalletAction } from "../../transfers/wallet-driver.ts";
import { payerOf } from "../buyer-data/collected-data.ts";
import { needsData } from "../buyer-data/collection-policies.ts";
import { done, type Refusal, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import { toPaymentView } from "../lifecycle/read-payment.ts";
import { calculateFee, noFee } from "../merchants/fee-policies.ts";
import { scaleDown, tokenMoney } from "../money.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Requester } from "../requester.ts";
import type { OptionView, PaymentView } from "../views.ts";
import { listCandidates, type Pair, readAccounts } from "./candidates.ts";
import { dropBarred, keepServed, keepWatched, listOffers, listTestOffers, type Offer } from "./offers.ts";
import { findPayable } from "./payable-assets.ts";
import { QUOTE_LIFETIME_MS } from "./prices.ts";
import { findQuotedPrice, findQuoteEnd, findQuoteRefusal, isSameQuote } from "./quotes.ts";
import { type Terms, toTerms } from "./terms.ts";
import { buildDataOf, listWalletActions, offeredActions } from "./wallet-actions.ts";

/**
 * Time after the deadline, or after the grace period of a price, besides the finality window, in which an authorization may still be
 * relayed, milliseconds.
 */
const GRACE_MS = 10 * 60_000;
/** Maximum number of accounts on configured chains, which are read from the chains. */
const MAX_ACCOUNTS = 500;
/** `Retry-After` for barred accounts, seconds. An account is barred for a day. */
const BARRED_RETRY_S = 3_600;
/** The last relay of authorizations in test mode: it lies in the past, so that they can never move money. */
const NEVER_VALID = new Date(1_000);

/**
 * Lists the options by which the accounts (CAIP-10) can pay: one per account and asset that the merchant is paid in and the
 * account holds enough of. Skips accounts on unknown chains and assets that no worker watches yet, and logs and skips texts that are
 * no accounts.
 *
 * Refuses with `payment_not_found`, `payment_expired`, `invalid_state`, `invalid_params` when no text is an account or
 * more than 500 accounts are on configured chains, `sanctioned_user` when screening rejects every account that could pay, and
 * `rate_limited` when all of them are barred because payments from them have burned gas. Throws the error of a price that cannot be
 * read at the moment when no account has an option without it.
 * @param args.requester recorded with the payment (see `cancelPayment`); unset only in tests
 */
export async function listOptions(
  deps: PaymentDeps,
  args: PaymentQuery & { accounts: readonly string[]; requester?: Requester },
): Promise<Result<{ payment: PaymentView; options: OptionView[] }>> {
  const { accounts, malformed } = readAccounts(deps, args.accounts);
  const [payment, quotes] = await Promise.all([
    findPaymentWithTerms(deps.db, { paymentId: args.paymentId, requester: args.requester?.name ?? null }),
    listNewest(deps, args, accounts),
  ]);
  if (!payment || !isReached(payment, args)) return refuse("payment_not_found", "no such payment");
  const closed = findClosedRefusal(payment, deps.now());
  if (closed) return closed;
  if (malformed === args.accounts.length)
    return refuse("invalid_params", "accounts: expected CAIP-10 accounts such as eip155:8453:0x…");
  if (accounts.length > MAX_ACCOUNTS)
    return refuse("invalid_params", `accounts: expected at most ${MAX_ACCOUNTS} on the chains of this service`);
  // Not what they are: a caller may have sent a key.
  if (malformed > 0) deps.log.info({ malformed }, "malformed accounts skipped");

  const terms = toTerms(payment);
  const [assets] = await Promise.all([
    findPayable(deps, payment, terms),
    // Record the requester before it gets options, so that a concurrent cancellation takes it into account.
    args.requester && recordRequester(deps.db, payment, args.requester),
  ]);
  const newest = new Map(quotes.map((row) => [keyOf(row), row]));
  const { candidates: priced, isPriceMissing } = listCandidates(assets, accounts, (pair) =>
    findQuotedPrice(newest.get(keyOfPair(pair)), deps.now()),
  );
  const candidates = payment.mode === "test" ? priced : await keepWatched(deps, priced);
  const served = payment.mode === "test" ? candidates : await keepServed(deps, candidates);
  if (served.length === 0 && candidates.length > 0) return refuse("sanctioned_user", "the account is not served");
  const allowed = payment.mode === "test" ? served : await dropBarred(deps, served);
  if (allowed.length === 0 && served.length > 0) return refuse("rate_limited", PAYER_BARRED, BARRED_RETRY_S);
  const affordable = payment.mode === "test" ? listTestOffers(allowed) : await listOffers(deps, allowed);
  // The account may be able to pay once the price can be read.
  if (affordable.length === 0 && isPriceMissing) throw assets.outage;
  const rows = await storeQuotes(deps, payment, { offers: affordable, newest, terms });
  // Keep the wallet's order of accounts, which is the buyer's preference, and the wallet's spelling of each account.
  const options = affordable.flatMap((offer) => {
    const row = rows.get(keyOfPair(offer));
    return row ? [{ ...row, account: offer.account }] : [];
  });
  return done({
    payment: await toPaymentView(deps, payment),
    options: options.map((row) => toView(deps, row, terms.collected)),
  });
}

/**
 * Stores the quotes of offers whose newest one has other terms. Returns the quotes of all offers, by payer and asset. Offers
 * that would leave the merchant with less than one minor unit of what it is owed have none.
 */
async function storeQuotes(
  deps: PaymentDeps,
  payment: PaymentWithMerchant,
  { offers, newest, terms }: { offers: readonly Offer[]; newest: ReadonlyMap<string, OptionRow>; terms: Terms },
): Promise<ReadonlyMap<string, OptionRow>> {
  const rows = new Map<string, OptionRow>();
  const fresh: NewOption[] = [];
  // The nonce does not depend on the option, so that a payer can never pay a payment twice with one token.
  const key = paymentKey({ merchantId: payment.merchant_id, paymentId: payment.id });
  const nonce = deriveNonce(deps.networks.deployment, key);
  const now = deps.now();
  for (const offer of offers) {
    const before = newest.get(keyOfPair(offer));
    const row = toRow(payment, offer, { terms, nonce, number: (before?.number ?? 0) + 1, now });
    if (row.owed_amount === 0n) continue;
    if (before && isSameQuote(before, row)) rows.set(keyOf(before), before);
    else fresh.push({ id: newId("opt", row.created_at), ...row });
  }
  for (const row of await insertOptions(deps.db, fresh)) rows.set(keyOf(row), row);
  return rows;
}

/** Returns the newest quotes of a payment for the accounts. Reads none for no accounts, or for too many. */
function listNewest(
  { db }: PaymentDeps,
  { paymentId }: Pick<PaymentQuery, "paymentId">,
  accounts: readonly { payer: string }[],
) {
  const payers = [...new Set(accounts.map(({ payer }) => payer))];
  return payers.length === 0 || accounts.length > MAX_ACCOUNTS ? [] : listNewestOptions(db, { paymentId, payers });
}

const keyOf = ({ payer, asset }: Pick<OptionRow, "payer" | "asset">) => `${payer} ${asset}`;
const keyOfPair = ({ payer, token }: Pair) => `${payer} ${token.asset}`;

/**
 * Lists the wallet actions of an option. On Solana the transaction has a fresh blockhash, and the option stays valid as
 * long as the blockhash. `data` is the `data` of the option's build action, or empty. Refuses like `listOptions`, and
 * with `quote_expired` when the option's quote has expired or was withdrawn.
 */
export async function listActions(
  deps: PaymentDeps,
  args: PaymentQuery & { optionId: string; data: string },
): Promise<Result<{ actions: readonly WalletAction[] }>> {
  const payment = await findPayment(deps.db, args);
  if (!payment) return refuse("payment_not_found", "no such payment");
  const closed = findClosedRefusal(payment, deps.now());
  if (closed) return closed;
  const option = await findOption(deps.db, { id: args.optionId, paymentId: payment.id });
  if (!option) return refuse("invalid_params", "optionId: is not an option of this payment");
  if (args.data !== "" && args.data !== buildDataOf(option))
    return refuse("invalid_params", "data: is not a build action of this option");
  const ended = findQuoteRefusal(deps, option);
  if (ended) return ended;
  return done({ actions: await listWalletActions(deps, { option, mode: args.mode }) });
}

/** Returns the refusal for a payment that can no longer be paid; undefined while it waits for its buyer. */
export function findClosedRefusal(payment: PaymentWithMerchant, now: Date): Refusal | undefined {
  if (payment.state === "expired") return refuse("payment_expired", "the payment has expired");
  if (payment.state !== "requires_action") return refuse("invalid_state", `the payment is ${payment.state}`);
  if (payment.expires_at <= now) return refuse("payment_expired", "the payment has expired");
  return undefined;
}

function toRow(
  payment: PaymentWithMerchant,
  { account, payer, chain, token, amount, rate, quotedUntil: held, owed, allowance }: Offer,
  {
    terms: { policies, fee: policy, direct: destinations },
    nonce,
    number,
    now,
  }: { terms: Terms; nonce: NewOption["authorization_nonce"]; number: number; now: Date },
): Omit<NewOption, "id"> {
  // Only an EIP-3009 authorization can name the merchant's account as its receiver, and then no fee can be deducted.
  const direct = token.kind === "eip3009" ? parseAccountId(destinations.get(token.asset) ?? "") : undefined;
  const fee = calculateFee(direct ? noFee : policy, amount, token.decimals);
  const quotedUntil = rate === null ? null : (held ?? new Date(now.getTime() + QUOTE_LIFETIME_MS));
  const finalityMs = getChainDriver(chain.chain).finalityMs(chain.network);
  // The buyer can hold an authorization back, by moving the money away: it must not keep its price for as long as the payment.
  const end = earlier(payment.expires_at, findQuoteEnd({ quoted_until: quotedUntil })) ?? payment.expires_at;
  const lastRelay = new Date(end.getTime() + finalityMs + GRACE_MS);
  return {
    payment_id: payment.id,
    number,
    account,
    chain: chain.chain,
    asset: token.asset,
    token: token.token,
    payer,
    receiver: direct ? canonicalAddress(chain.chain, direct.address) : chain.treasury,
    direct: direct !== undefined,
    amount,
    rate,
    quoted_until: quotedUntil,
    owed_asset: owed?.asset ?? null,
    owed_amount: owed && scaleDown(amount - fee.total, token.decimals, owed.decimals),
    fee: fee.total,
    fee_fixed: fee.fixed,
    fee_basis_points: fee.basisPoints,
    kind: token.kind,
    allowance,
    authorization_nonce: nonce,
    needs_data: needsData(policies, { asset: token.asset, unit: payment.unit, value: payment.value }),
    valid_before: getTransferDriver(chain).wallets.validBefore(payment.mode === "test" ? NEVER_VALID : lastRelay),
    created_at: now,
  };
}

function toView(deps: PaymentDeps, row: OptionRow, collected: ReadonlySet<string>): OptionView {
  const chain = getChain(deps.chains, row.chain);
  const token = getToken(chain, row.asset);
  return {
    id: row.id,
    account: row.account,
    amount: tokenMoney(row.amount, token, chain.network),
    etaSeconds: Math.max(1, Math.ceil(getChainDriver(chain.chain).finalityMs(chain.network) / 1000)),
    expiresAt: earlier(getTransferDriver(chain).wallets.optionEnd(deps.now()), row.quoted_until),
    needsData: row.needs_data && !collected.has(payerOf(row)),
    actions: offeredActions(deps, row),
  };
}

/** Returns the earlier of two times, either of which may be null. */
function earlier(one: Date | null, other: Date | null): Date | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}
