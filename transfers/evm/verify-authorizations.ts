import { type Hex, size } from "viem";
import { type AccountKind, readAccountKinds, unwrapSignature } from "../../chains/evm/account-code.ts";
import { type BatchMember, type Call, type CallOutcome, simulateSeparately } from "../../chains/evm/multicall.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { recoverSigner, validateSignature } from "../../chains/evm/signature.ts";
import { isObserved } from "../../db/queries/observations.ts";
import { SCREENED_OUT } from "../list-screening.ts";
import { PAYER_BARRED } from "../refusal-reasons.ts";
import type { EvmSigned, VerificationResult, VerifyDeps } from "../verification.ts";
import { hashRow, isAllowedFactory, listCalls } from "./authorization-calls.ts";
import { type GasRules, readGasRules, WALLETS_EXHAUSTED } from "./gas-limits.ts";
import { inspectScreened, readScreened } from "./oracle-screening.ts";
import { type Funds, type FundsPlan, INSUFFICIENT_FUNDS, planFundsCheck } from "./payer-funds.ts";
import { simulateWallets } from "./simulate-wallets.ts";
import { gasOf } from "./transfer-gas.ts";
import { verifyPush } from "./verify-push.ts";
import { readWalletCodes } from "./wallet-code.ts";

/** A transfer whose signature is well-formed. `deployment` is the call of a factory that precedes it. */
type WellFormed = {
  one: EvmSigned;
  smartWallet: boolean;
  codeHash: string | undefined;
  deployed: boolean;
  deployment: Call | undefined;
  member: BatchMember;
};

/** Transfers in one simulation at most. */
const MAX_SIMULATED = 100;
/** Pushes that are verified concurrently. */
const CONCURRENT_PUSHES = 16;

/** Verifies transfers of every kind: pushes by their transactions, all others by their authorizations. */
export async function verifyAnyKind(
  deps: VerifyDeps,
  chain: EvmChain,
  all: readonly EvmSigned[],
  by: "key" | "wallet",
): Promise<[EvmSigned, VerificationResult][]> {
  const results: [EvmSigned, VerificationResult][] = [];
  const pushes = all.filter(({ kind }) => kind === "push");
  for (let from = 0; from < pushes.length; from += CONCURRENT_PUSHES) {
    const some = pushes.slice(from, from + CONCURRENT_PUSHES);
    results.push(
      ...(await Promise.all(
        some.map(async (one): Promise<[EvmSigned, VerificationResult]> => [one, await verifyPush(deps, chain, one)]),
      )),
    );
  }
  const authorized = all.filter(({ kind }) => kind !== "push");
  for (let from = 0; from < authorized.length; from += MAX_SIMULATED)
    results.push(...(await verifyEvm(deps, chain, { all: authorized.slice(from, from + MAX_SIMULATED), by })));
  return results;
}

/** Transfers of which some have their result, and the others are well-formed, with the calls that read their payers' funds. */
type Prepared = {
  results: Map<EvmSigned, VerificationResult>;
  open: readonly WellFormed[];
  funds: FundsPlan;
};

/**
 * Verifies EIP-3009 and Permit2 authorizations, cheap checks first: the form and the key, and the gas limits; then the code at
 * the payers' addresses, balances, screening and plain keys' transfers. Nearly all payers are plain keys, so one call reads the
 * code and simulates, as long as no payer has code; otherwise a second call follows. Then simulates each contract wallet's
 * transfer as the transaction that would be sent. Unless `by` is `wallet`, payers that are contracts are only reported as such
 * (`byCode`), so that no plain key waits for a contract.
 */
async function verifyEvm(
  deps: VerifyDeps,
  chain: EvmChain,
  args: { all: readonly EvmSigned[]; by: "key" | "wallet" },
): Promise<Map<EvmSigned, VerificationResult>> {
  const rules = await readGasRules(deps, chain, { forLane: false });
  const accounts = [...new Set(args.all.map((one) => one.payer))];
  const byKey = new Map(args.all.map((one) => [one, checkKey(chain, one)]));
  const given = { ...args, byKey, rules };
  const keys = args.by === "key" ? await prepare(deps, chain, { ...given, kinds: new Map() }) : undefined;
  const inspected =
    keys && keys.open.length > 0
      ? await inspectScreened(deps, chain, { accounts, ...toReading(chain, keys) })
      : undefined;
  if (keys && inspected?.found) return conclude(deps, chain, keys, inspected.found);
  const read = inspected?.kinds ?? (await readAccountKinds(chain.rpc, accounts));
  const kinds = new Map(accounts.map((account, index) => [account, read[index] ?? "key"]));
  const prepared = await prepare(deps, chain, { ...given, kinds });
  if (prepared.open.length === 0) return prepared.results;
  return conclude(deps, chain, prepared, await readScreened(deps, chain, toReading(chain, prepared)));
}

/** Transfers, what `checkKey` returns for each, and the kinds of their payers; a plain key where `kinds` has none. */
type Given = {
  all: readonly EvmSigned[];
  by: "key" | "wallet";
  byKey: ReadonlyMap<EvmSigned, VerificationResult>;
  kinds: ReadonlyMap<Hex, AccountKind>;
};

/** Checks forms and gas limits, and plans the check of funds. */
async function prepare(
  deps: VerifyDeps,
  chain: EvmChain,
  { rules, ...given }: Given & { rules: GasRules },
): Promise<Prepared> {
  const results = new Map<EvmSigned, VerificationResult>();
  const open = keepWithinLimits(await checkForms(chain, given, results), rules, results);
  // Payers that are refused already cost the others no further calls.
  const funds = await planFundsCheck(
    deps,
    chain,
    open.map(({ one }) => one),
  );
  return { results, open, funds };
}

/** Returns what one call reads, simulates and screens. */
function toReading(chain: EvmChain, { open, funds }: Prepared) {
  const members = open.filter(({ smartWallet }) => !smartWallet).map(({ member }) => member);
  const payers = [...new Set(open.map(({ one }) => one.payer))];
  return { from: chain.treasury, reads: funds.calls, members, payers };
}

/** Returns the results of prepared transfers by what the call of `toReading` found. */
async function conclude(
  deps: VerifyDeps,
  chain: EvmChain,
  { results, open, funds: plan }: Prepared,
  found: Awaited<ReturnType<typeof readScreened>>,
): Promise<Map<EvmSigned, VerificationResult>> {
  const funds = plan.read(found.reads);
  const passed = open.filter(({ one }) => !found.refused.has(one.payer) && funds.holds(one));
  const plain = open.filter(({ smartWallet }) => !smartWallet);
  const outcomes = new Map(plain.map((each, index) => [each, found.outcomes[index]]));
  await simulateFailedAlone(chain, passed, outcomes);
  const wallets = passed.filter(({ smartWallet }) => smartWallet);
  for (const [each, outcome] of await simulateWallets(deps, chain, wallets)) outcomes.set(each, outcome);
  for (const each of open)
    results.set(
      each.one,
      await decide(deps, each, { outcome: outcomes.get(each), refused: found.refused, funds, counted: plan.counted }),
    );
  return results;
}

/** Verifies that a plain key's signature is well-formed and the payer's over exactly this transfer. Calls no chain. */
export function checkKey(chain: EvmChain, signed: EvmSigned): VerificationResult {
  const reason = validateSignature(signed.proof);
  if (reason) return { ok: false, reason };
  return recoverSigner(hashRow(chain, signed), signed.proof) === signed.payer
    ? { ok: true, smartWallet: false }
    : { ok: false, reason: "the signature is not the account's over this payment" };
}

async function checkForms(
  chain: EvmChain,
  { all, by, byKey, kinds }: Given,
  results: Map<EvmSigned, VerificationResult>,
): Promise<WellFormed[]> {
  const good: { one: EvmSigned; smartWallet: boolean }[] = [];
  for (const one of all) {
    const result = checkForm(chain, one, kinds.get(one.payer) ?? "key", byKey.get(one) ?? checkKey(chain, one));
    if (!result.ok) results.set(one, result);
    else if (result.smartWallet && by === "key")
      results.set(one, { ok: false, byCode: true, later: true, reason: "the account is a contract" });
    else good.push({ one, smartWallet: result.smartWallet });
  }
  const codes = await readWalletCodes(
    chain,
    good.filter(({ smartWallet }) => smartWallet).map(({ one }) => one),
  );
  return good.map(({ one, smartWallet }): WellFormed => {
    const code = codes.get(one);
    const deployed = code?.isDeployed === true;
    const member = toMember(chain, one, { smartWallet, deployed });
    return { one, smartWallet, codeHash: code?.hash, deployed, deployment: code?.deployment, member };
  });
}

/**
 * Verifies the form of a signature against the account at the payer's address. The simulation later runs a wallet's own code
 * exactly as the chain would.
 */
function checkForm(
  chain: EvmChain,
  signed: EvmSigned,
  payer: AccountKind,
  byKey: VerificationResult,
): VerificationResult {
  const { signature, deployment } = unwrapSignature(signed.proof);
  // A lane unwraps the stored signature again, so the signature inside must not name a factory.
  if (deployment && unwrapSignature(signature).deployment)
    return { ok: false, reason: "the signature is wrapped more than once (ERC-6492)" };
  if (payer === "key" && !deployment) return byKey;
  if (payer === "key" && checkKey(chain, { ...signed, proof: signature }).ok)
    return { ok: false, reason: "the account has a key of its own, whose signature needs no factory" };
  if (payer === "key" && deployment && !isAllowedFactory(chain, deployment.target))
    return { ok: false, reason: "the account is a wallet that is not deployed, and its factory is not allowed here" };
  const token = chain.tokens.get(signed.asset);
  // Tokens that accept only v, r and s check the key, even where it has delegated to code (EIP-7702).
  if (token?.kind === "eip3009" && !token.bytesSignatures && !byKey.ok)
    return { ok: false, reason: `${token.symbol} takes no signatures of smart wallets` };
  return size(signed.proof) > 0 ? { ok: true, smartWallet: true } : { ok: false, reason: "the signature is empty" };
}

function toMember(
  chain: EvmChain,
  signed: EvmSigned,
  { smartWallet, deployed }: Pick<WellFormed, "smartWallet" | "deployed">,
): BatchMember {
  const bytes = (hex: Hex | null) => (hex === null ? null : Buffer.from(hex.slice(2), "hex"));
  const signature = bytes(deployed ? unwrapSignature(signed.proof).signature : signed.proof);
  const row = { ...signed, signature, permit: bytes(signed.permit), smart_wallet: smartWallet };
  return { calls: listCalls(chain, row), gas: gasOf(chain, row), alone: smartWallet };
}

/** Rejects payers that burned too much gas, and contract wallets while wallets like them burned too much. */
function keepWithinLimits(
  formal: readonly WellFormed[],
  rules: GasRules,
  results: Map<EvmSigned, VerificationResult>,
): WellFormed[] {
  return formal.filter(({ one, smartWallet, codeHash }) => {
    const isExhausted = smartWallet && (rules.exhausted || rules.codes.has(codeHash ?? ""));
    const reason = rules.barred.has(one.payer) ? PAYER_BARRED : isExhausted ? WALLETS_EXHAUSTED : undefined;
    if (reason) results.set(one, { ok: false, reason });
    return reason === undefined;
  });
}

/** Simulates plain keys' transfers that failed among the others again alone, because another one may be the cause. */
async function simulateFailedAlone(
  chain: EvmChain,
  passed: readonly WellFormed[],
  outcomes: Map<WellFormed, CallOutcome | undefined>,
): Promise<void> {
  const failed = passed.filter((each) => !each.smartWallet && !outcomes.get(each)?.ok);
  const at = { multicall: chain.multicall, from: chain.treasury };
  const alone = await simulateSeparately(
    chain.rpc,
    at,
    failed.map(({ member }) => member),
  );
  for (const each of failed) outcomes.set(each, alone.get(each.member));
}

async function decide(
  deps: VerifyDeps,
  { one, smartWallet, codeHash, deployed, deployment }: WellFormed,
  found: {
    outcome: CallOutcome | undefined;
    refused: ReadonlySet<string>;
    funds: Funds;
    counted: ReadonlySet<string>;
  },
): Promise<VerificationResult> {
  const { outcome, funds, counted } = found;
  const good: VerificationResult = { ok: true, smartWallet, codeHash, deployed, counted };
  if (found.refused.has(one.payer)) return { ok: false, reason: SCREENED_OUT };
  const uncovered = outcome?.ok ? funds.take(one) : undefined;
  if (outcome?.ok && uncovered === undefined) return good;
  // Another relayer may have made the same transfer. Then the money has arrived, unless it is booked as an exception. That
  // says nothing about a factory's call, which a lane would make after a reorg.
  if (!deployment && (await isObserved(deps.db, one))) return good;
  if (outcome?.ok || !funds.holds(one)) return { ok: false, reason: uncovered ?? INSUFFICIENT_FUNDS };
  if (!outcome) return { ok: false, reason: "the transfer was not simulated" };
  // The lane cannot pay for gas, which is no reason to reject the buyer.
  if ("unfunded" in outcome) return { ok: false, later: true, reason: "the payment cannot be checked at this moment" };
  return { ok: false, reason: `the transfer would fail: ${outcome.reason}` };
}
