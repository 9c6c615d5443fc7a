import { isFresh } from "../../chains/cache-age.ts";
import { findTokenAccount, tokenProgramIds } from "../../chains/solana/build-payment.ts";
import { type Account, listValidBlockhashes, readNewestAccounts } from "../../chains/solana/cluster-state.ts";
import { limitUnits, readBudget } from "../../chains/solana/compute-budget.ts";
import { LIGHTHOUSE_PROGRAM } from "../../chains/solana/lighthouse-guards.ts";
import {
  readTokenAccount,
  type TokenAccountFacts,
  validateDestinationAccount,
  validateSourceAccount,
} from "../../chains/solana/mints.ts";
import { getSolanaToken, type SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { MAX_COMPUTE_UNITS } from "../../chains/solana/wallet-instructions.ts";
import type { ParsedTransaction } from "../../chains/solana/wire-format.ts";
import type { SolanaSigned } from "../verification.ts";

/** A transaction that was compared with the requested one and whose signature is valid. */
export type ComparedPayment = { signed: SolanaSigned; parsed: ParsedTransaction };

/** How long the compute units of a token's payments are used, milliseconds. */
const UNITS_MS = 600_000;
/** What a relayer must hold besides the highest priority fee, lamports: the rent of its account and two signatures. */
const LEAST_LAMPORTS = 890_880n + 10_000n;

/** The compute units that a simulated payment in an asset took. */
const cache = new WeakMap<SolanaChain, Map<string, { at: number; units: number }>>();

/** Remembers the compute units of a simulated payment, so that later ones in its asset need no simulation. */
export function noteUnits(chain: SolanaChain, { signed, parsed }: ComparedPayment, units: number, now: number): void {
  if (!hasNoGuards(parsed)) return;
  const known = cache.get(chain) ?? new Map<string, { at: number; units: number }>();
  cache.set(chain, known);
  known.set(signed.asset, { at: now, units });
}

/**
 * Returns the payments that succeed on the newest state, each with a slot in which its blockhash was valid. Two calls serve
 * them all. A payment without guards moves tokens from one account to another and does nothing else, so the two accounts,
 * the blockhash, the relayer's balance and the compute units decide. Any other payment is left out, and only its simulation
 * can refuse it: one with guards, one of Token-2022, one with fewer units than an earlier payment in its asset took, and one whose
 * accounts are not as they must be. Throws ChainError.
 */
export async function listPayable(
  chain: SolanaChain,
  payments: readonly ComparedPayment[],
  now: number,
): Promise<Map<ComparedPayment, number>> {
  const plain = payments.filter(
    (one) => hasNoGuards(one.parsed) && isOfPlainToken(chain, one) && hasUnits(chain, one, now),
  );
  if (plain.length === 0) return new Map();
  const [accounts, blockhashes] = await Promise.all([
    readNewestAccounts(chain, [...new Set(plain.flatMap((one) => Object.values(accountsOf(chain, one))))]),
    listValidBlockhashes(chain, [...new Set(plain.map(({ parsed }) => parsed.blockhash))]),
  ]);
  const state = { accounts, tokens: readTokenAccounts(accounts) };
  const payable = plain.flatMap((one): [ComparedPayment, number][] => {
    const slot = blockhashes.get(one.parsed.blockhash);
    return slot !== undefined && canPay(chain, one, state) ? [[one, slot]] : [];
  });
  return new Map(payable);
}

/** Reads each account once: all payments of a batch have the same receiver. Leaves out those of other programs. */
function readTokenAccounts(accounts: ReadonlyMap<string, Account>): Map<string, TokenAccountFacts> {
  const ofTokens = [...accounts].filter(([, { owner }]) => owner === tokenProgramIds.token);
  return new Map(
    ofTokens.flatMap(([address, { data }]): [string, TokenAccountFacts][] => {
      const facts = readTokenAccount(data);
      return facts ? [[address, facts]] : [];
    }),
  );
}

function hasNoGuards({ instructions }: ParsedTransaction): boolean {
  return !instructions.some(({ program }) => program === LIGHTHOUSE_PROGRAM);
}

/** Returns false for Token-2022: its issuer can pause a mint or add a fee, which the two accounts do not show. */
function isOfPlainToken(chain: SolanaChain, { signed }: ComparedPayment): boolean {
  return getSolanaToken(chain, signed.asset).program === "token";
}

function hasUnits(chain: SolanaChain, { signed, parsed }: ComparedPayment, now: number): boolean {
  const known = cache.get(chain)?.get(signed.asset);
  if (!known || !isFresh(known.at, now, UNITS_MS)) return false;
  return readBudget(parsed).units >= limitUnits(known.units, Number(MAX_COMPUTE_UNITS));
}

function accountsOf(chain: SolanaChain, { signed, parsed }: ComparedPayment) {
  const { token, program } = getSolanaToken(chain, signed.asset);
  return {
    source: findTokenAccount(signed.payer, token, program),
    destination: findTokenAccount(signed.receiver, token, program),
    relayer: parsed.feePayer,
  };
}

type NewestState = { accounts: ReadonlyMap<string, Account>; tokens: ReadonlyMap<string, TokenAccountFacts> };

function canPay(chain: SolanaChain, payment: ComparedPayment, { accounts, tokens }: NewestState): boolean {
  const { token: mint } = getSolanaToken(chain, payment.signed.asset);
  const { payer, receiver, amount } = payment.signed;
  const addresses = accountsOf(chain, payment);
  const [source, destination] = [tokens.get(addresses.source), tokens.get(addresses.destination)];
  const lamports = accounts.get(addresses.relayer)?.lamports ?? 0n;
  return (
    validateSourceAccount(source, { mint, owner: payer, amount }) === undefined &&
    destination !== undefined &&
    validateDestinationAccount(destination, { mint, owner: receiver }) === undefined &&
    lamports >= LEAST_LAMPORTS + chain.network.maxPriorityFee
  );
}
