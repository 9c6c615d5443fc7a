import type { Hex } from "viem";
import { parseAccountId } from "../chains/caip.ts";
import { deriveNonce } from "../chains/evm/eip3009.ts";
import { readHoldings } from "../chains/evm/holdings.ts";
import { type EvmChain, type EvmToken, getToken } from "../chains/evm/open.ts";
import { type AccountKind, readAccountKinds } from "../chains/evm/wallets.ts";
import { ChainFault } from "../chains/faults.ts";
import { getChain } from "../chains/open.ts";
import { findOption, type OptionRow, upsertOptions } from "../db/options.ts";
import { findPayment, type PaymentWithMerchant } from "../db/payments.ts";
import type { Allowance, Mode } from "../db/tables.ts";
import type { EvmNetwork } from "../ops/networks.ts";
import { screenAccounts } from "../transfers/screening.ts";
import { listWalletActions } from "./actions.ts";
import { chooseAllowance } from "./allowances.ts";
import { payerOf } from "./collect.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Refusal, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";
import { tokenMoney, toTokenAmount } from "./money.ts";
import { needsData, type Policy } from "./policies.ts";
import { toPaymentView } from "./read.ts";
import { readTerms } from "./terms.ts";
import type { OptionView, PaymentView, WalletAction } from "./views.ts";

/** How long after the deadline an authorization may still be carried, beside the finality window, milliseconds. */
const GRACE_MS = 10 * 60_000;
/** What a wallet signs in test mode was never valid, so it can never move money. */
const NEVER_VALID = 1;

/** A wallet waits for options with its buyer looking on, milliseconds. */
const BALANCES_WITHIN_MS = 5_000;
/** Beyond numeric(78,0); no token has that much, and no account could pay it. */
const TOO_MUCH = 10n ** 78n;

type Candidate = { account: string; payer: Hex; chain: EvmChain; token: EvmToken; amount: bigint };
/** What an account can really pay, with what it still has to allow for it. */
type Offer = Candidate & { allowance: Allowance | null };

/**
 * Every way in which the accounts (CAIP-10, at most 50) can pay: one option per asset that the merchant settles and the
 * account holds enough of. Accounts on chains we do not know are skipped, whatever their addresses look like.
 * Refuses with `payment_not_found`, `payment_expired`, `invalid_state`, `invalid_params` naming a bad account, and
 * `sanctioned_user` when screening refuses every account that could pay.
 */
export async function listOptions(
  deps: PaymentDeps,
  args: { paymentId: string; mode: Mode; accounts: readonly string[] },
): Promise<Result<{ payment: PaymentView; options: OptionView[] }>> {
  const payment = await findPayment(deps.db, { id: args.paymentId, mode: args.mode });
  if (!payment) return refuse("payment_not_found", "no such payment");
  const closed = findClosed(payment, deps.now());
  if (closed) return closed;
  const bad = args.accounts.findIndex((account) => !isUsableAccount(deps, account));
  if (bad >= 0) return refuse("invalid_params", `accounts.${bad}: expected a CAIP-10 account such as eip155:8453:0x…`);

  const terms = await readTerms(deps.db, payment);
  const candidates = listCandidates(deps, payment, args.accounts, terms.settled);
  const served = payment.mode === "test" ? candidates : await keepServed(deps, candidates);
  if (served.length === 0 && candidates.length > 0) return refuse("sanctioned_user", "the account is not served");
  const affordable = payment.mode === "test" ? listTestOffers(served) : await listOffers(deps, served);
  const rows = await upsertOptions(
    deps.db,
    affordable.map((candidate) => toRow(deps, payment, candidate, terms.policies)),
  );
  // The rows come back in any order; the wallet's own order of accounts is the buyer's preference.
  const byKey = new Map(rows.map((row) => [`${row.payer} ${row.asset}`, row]));
  const options = affordable.flatMap(({ payer, token }) => byKey.get(`${payer} ${token.asset}`) ?? []);
  return done({
    payment: toPaymentView(deps, payment),
    options: options.map((row) => toView(deps, row, terms.collected)),
  });
}

/** The whole list of wallet actions of an option. We hand out no `build` actions, so `data` has to be empty. */
export async function listActions(
  deps: PaymentDeps,
  args: { paymentId: string; mode: Mode; optionId: string; data: string },
): Promise<Result<{ actions: WalletAction[] }>> {
  const payment = await findPayment(deps.db, { id: args.paymentId, mode: args.mode });
  if (!payment) return refuse("payment_not_found", "no such payment");
  const closed = findClosed(payment, deps.now());
  if (closed) return closed;
  const option = await findOption(deps.db, { id: args.optionId, paymentId: payment.id });
  if (!option) return refuse("invalid_params", "optionId: is not an option of this payment");
  if (args.data !== "") return refuse("invalid_params", "data: is not a build action of this option");
  return done({ actions: listWalletActions(deps, option) });
}

/** Why a payment takes no more offers; undefined while it waits for its buyer. */
export function findClosed(payment: PaymentWithMerchant, now: Date): Refusal | undefined {
  if (payment.state === "expired") return refuse("payment_expired", "the payment has expired");
  if (payment.state !== "requires_action") return refuse("invalid_state", `the payment is ${payment.state}`);
  if (payment.expires_at <= now) return refuse("payment_expired", "the payment has expired");
  return undefined;
}

/** What an address looks like is known of our own chains only; on any other it is the wallet's business. */
function isUsableAccount({ chains }: Pick<PaymentDeps, "chains">, text: string): boolean {
  const account = parseAccountId(text);
  if (!account) return false;
  return !chains.has(account.chain) || /^0x[0-9a-fA-F]{40}$/.test(account.address);
}

function listCandidates(
  deps: PaymentDeps,
  payment: PaymentWithMerchant,
  accounts: readonly string[],
  settled: ReadonlySet<string>,
): Candidate[] {
  const seen = new Set<string>();
  return accounts.flatMap((account) => {
    const parsed = parseAccountId(account);
    const chain = parsed && deps.chains.get(parsed.chain);
    if (!parsed || !chain) return [];
    const payer = parsed.address.toLowerCase() as Hex;
    // Our own money cannot pay us, and the same account in another spelling is the same account.
    if (payer === chain.treasury || seen.has(`${chain.chain} ${payer}`)) return [];
    seen.add(`${chain.chain} ${payer}`);
    return [...chain.tokens.values()].flatMap((token) => {
      const amount = settled.has(token.asset) ? toTokenAmount(payment, token) : undefined;
      return amount === undefined || amount >= TOO_MUCH ? [] : [{ account, payer, chain, token, amount }];
    });
  });
}

/**
 * Without those accounts that screening refuses. Where it cannot say, all of them are shown their options: nothing is
 * carried for anybody until it can.
 */
async function keepServed(deps: PaymentDeps, candidates: readonly Candidate[]): Promise<Candidate[]> {
  const kept: Candidate[] = [];
  for (const [chain, here] of Map.groupBy(candidates, (candidate) => candidate.chain)) {
    const payers = [...new Set(here.map(({ payer }) => payer))];
    const screened = within(BALANCES_WITHIN_MS, screenAccounts(deps, chain, payers), chain);
    const refused = await screened.catch((err: unknown) => {
      deps.log.warn({ err, chain: chain.chain }, "accounts could not be screened for their options");
      return new Set<string>();
    });
    kept.push(...here.filter(({ payer }) => !refused.has(payer)));
  }
  return kept;
}

/** In test mode no balance is asked, and nothing is offered that a wallet would send. */
function listTestOffers(candidates: readonly Candidate[]): Offer[] {
  return candidates
    .filter(({ token }) => token.kind !== "push")
    .map((candidate) => ({ ...candidate, allowance: null }));
}

/**
 * What the accounts can pay; one multicall per chain. A chain that does not answer in time is left out with a warning,
 * so that it does not cost the buyer the others; when none answers, its fault is thrown.
 */
async function listOffers(deps: PaymentDeps, candidates: readonly Candidate[]): Promise<Offer[]> {
  const chains = [...new Set(candidates.map((candidate) => candidate.chain))];
  const ends = await Promise.allSettled(
    chains.map((chain) => {
      const here = candidates.filter((candidate) => candidate.chain === chain);
      return within(BALANCES_WITHIN_MS, listOffersOn(chain, here), chain);
    }),
  );
  const failed = ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
  if (failed.length > 0 && failed.length === ends.length) throw failed[0];
  for (const err of failed) deps.log.warn({ err }, "a chain is left out of the options");
  const offers = ends.flatMap((end) => (end.status === "fulfilled" ? end.value : []));
  // In the wallet's own order.
  return offers.toSorted((a, b) => candidates.indexOf(a.candidate) - candidates.indexOf(b.candidate)).map(toOffer);
}

type Found = { candidate: Candidate; allowance: Allowance | null };

function toOffer({ candidate, allowance }: Found): Offer {
  return { ...candidate, allowance };
}

async function listOffersOn(chain: EvmChain, candidates: readonly Candidate[]): Promise<Found[]> {
  const wanted = candidates.map(({ token, payer }) => ({ token, account: payer }));
  const [holdings, kinds] = await Promise.all([readHoldings(chain, wanted), readKinds(chain, candidates)]);
  return candidates.flatMap((candidate, index) => {
    const holding = holdings[index];
    const kind = kinds.get(candidate.payer) ?? "key";
    const allowance = holding && chooseAllowance(candidate.token, { kind, holding }, candidate.amount);
    return allowance === undefined ? [] : [{ candidate, allowance }];
  });
}

/** What stands at the accounts; asked only where it makes a difference to what is offered. */
async function readKinds(chain: EvmChain, candidates: readonly Candidate[]): Promise<Map<string, AccountKind>> {
  const matters = candidates.some(({ token }) => token.kind !== "eip3009" || !token.bytesSignatures);
  const payers = matters ? [...new Set(candidates.map(({ payer }) => payer))] : [];
  const kinds = payers.length > 0 ? await readAccountKinds(chain.rpc, payers) : [];
  return new Map(payers.map((payer, index) => [payer, kinds[index] ?? "key"]));
}

async function within<T>(ms: number, work: Promise<T>, chain: EvmChain): Promise<T> {
  const late = Promise.withResolvers<never>();
  const fault = new ChainFault("rpc_unreachable", { detail: `no balances from ${chain.chain} within ${ms} ms` });
  const timer = setTimeout(() => late.reject(fault), ms);
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}

function toRow(
  deps: PaymentDeps,
  payment: PaymentWithMerchant,
  { account, payer, chain, token, amount, allowance }: Offer,
  policies: readonly Policy[],
) {
  const lastCarried = payment.expires_at.getTime() + finalityMs(chain.network) + GRACE_MS;
  return {
    id: newId("opt"),
    payment_id: payment.id,
    account,
    chain: chain.chain,
    asset: token.asset,
    token: token.token,
    payer,
    receiver: chain.treasury,
    amount,
    kind: token.kind,
    allowance: allowance && JSON.stringify(allowance),
    // Without the option: one payer can never pay one payment twice on one token.
    authorization_nonce: deriveNonce(deps.networks.deployment, ["payment", payment.id]),
    needs_data: needsData(policies, { asset: token.asset, unit: payment.unit, value: payment.value }),
    valid_before: payment.mode === "test" ? NEVER_VALID : Math.ceil(lastCarried / 1000),
    expires_at: null,
    created_at: deps.now(),
  };
}

function toView(deps: PaymentDeps, row: OptionRow, collected: ReadonlySet<string>): OptionView {
  const chain = getChain(deps.chains, row.chain);
  const token = getToken(chain, row.asset);
  return {
    id: row.id,
    account: row.account,
    amount: tokenMoney(row.amount, token, chain.network),
    etaSeconds: Math.max(1, Math.ceil(finalityMs(chain.network) / 1000)),
    expiresAt: row.expires_at,
    needsData: row.needs_data && !collected.has(payerOf(row)),
    actions: listWalletActions(deps, row),
  };
}

/** Usual time from inclusion to confirmed; for the tags, what their networks take at most. */
function finalityMs(network: EvmNetwork): number {
  if (typeof network.finality === "object") return network.finality.blocks * network.blockMs;
  return network.finality === "safe" ? 10 * 60_000 : 30 * 60_000;
}
