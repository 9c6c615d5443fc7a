import { type Hex, size } from "viem";
import { type CallOutcome, type Member, simulateAlone } from "../chains/evm/multicall.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { findSignatureFault, recoverSigner } from "../chains/evm/signature.ts";
import { simulateTransaction } from "../chains/evm/simulate-transaction.ts";
import { type AccountKind, readAccountKinds, readCodeHashes, unwrapSignature } from "../chains/evm/wallets.ts";
import { findBaseFee } from "../db/cursors.ts";
import { isSighted } from "../db/sightings.ts";
import { hashRow, isAllowedFactory, listCalls } from "./authorization.ts";
import { buildPayload } from "./batch.ts";
import type { TransferDeps } from "./deps.ts";
import { chooseFees } from "./fees.ts";
import { type Funds, planFunds, SHORT } from "./funds.ts";
import { BARRED, readGasRules, WALLETS_EXHAUSTED } from "./gas-limits.ts";
import { walletLaneOf } from "./lane-signers.ts";
import { readScreened, SCREENED_OUT } from "./screening.ts";
import { gasOf } from "./transfer-gas.ts";
import type { Signed, Verdict } from "./verdict.ts";

export type EvmSigned = Signed & { proof: Hex };
export type VerifyDeps = Pick<TransferDeps, "db" | "chains" | "screeningList" | "metrics" | "now">;

/** One whose form is good. */
type Formal = { one: EvmSigned; smartWallet: boolean; codeHash: string | undefined; member: Member };

/**
 * Verifies EIP-3009 and Permit2 authorizations, cheap checks first: form and key, what stands at the payers (one call),
 * gas limits, then balances, screening and plain keys' transfers (one call), and contract wallets' last, each simulated
 * as the transaction that would be sent. Those of payers that are code are only told apart (`byCode`) unless `by` is
 * `wallet`: nothing that belongs to a plain key waits for code.
 */
export async function verifyEvm(
  deps: VerifyDeps,
  chain: EvmChain,
  args: { all: readonly EvmSigned[]; by: "key" | "wallet" },
): Promise<Map<EvmSigned, Verdict>> {
  const verdicts = new Map<EvmSigned, Verdict>();
  const formal = await checkForms(chain, args, verdicts);
  const open = await checkLimits(deps, chain, formal, verdicts);
  if (open.length === 0) return verdicts;

  const plan = await planFunds(
    deps,
    chain,
    open.map(({ one }) => one),
  );
  const plain = open.filter(({ smartWallet }) => !smartWallet);
  const payers = [...new Set(open.map(({ one }) => one.payer))];
  const members = plain.map(({ member }) => member);
  const found = await readScreened(deps, chain, { from: chain.treasury, reads: plan.calls, members, payers });
  const funds = plan.read(found.reads);
  const passed = open.filter(({ one }) => !found.refused.has(one.payer) && funds.holds(one));
  const outcomes = new Map(plain.map((each, index) => [each, found.outcomes[index]]));
  await askAgain(chain, passed, outcomes);
  await simulateWallets(deps, chain, passed, outcomes);

  for (const each of open)
    verdicts.set(
      each.one,
      await decide(deps, each, { outcome: outcomes.get(each), refused: found.refused, funds, counted: plan.counted }),
    );
  return verdicts;
}

/** A plain key's signature: well formed, and the payer's over exactly this transfer. */
export function checkKey(chain: EvmChain, signed: EvmSigned): Verdict {
  const fault = findSignatureFault(signed.proof);
  if (fault) return { ok: false, reason: fault };
  return recoverSigner(hashRow(chain, signed), signed.proof) === signed.payer
    ? { ok: true, smartWallet: false }
    : { ok: false, reason: "the signature is not the account's over this payment" };
}

async function checkForms(
  chain: EvmChain,
  { all, by }: { all: readonly EvmSigned[]; by: "key" | "wallet" },
  verdicts: Map<EvmSigned, Verdict>,
): Promise<Formal[]> {
  const payers = [...new Set(all.map((one) => one.payer))];
  const kinds = await readAccountKinds(chain.rpc, payers);
  const kindOf = new Map(payers.map((payer, index) => [payer as string, kinds[index] ?? "key"]));
  const good: { one: EvmSigned; smartWallet: boolean }[] = [];
  for (const one of all) {
    const verdict = checkForm(chain, one, kindOf.get(one.payer) ?? "key");
    if (!verdict.ok) verdicts.set(one, verdict);
    else if (verdict.smartWallet && by === "key")
      verdicts.set(one, { ok: false, byCode: true, later: true, reason: "the account is a contract" });
    else good.push({ one, smartWallet: verdict.smartWallet });
  }
  const hashes = await hashCodes(
    chain,
    good.filter(({ smartWallet }) => smartWallet).map(({ one }) => one),
  );
  return good.map(({ one, smartWallet }) => {
    return { one, smartWallet, codeHash: hashes.get(one), member: toMember(chain, one, smartWallet) };
  });
}

/** By a wallet's code; by its factory, where it is still to be deployed. */
async function hashCodes(chain: EvmChain, wallets: readonly EvmSigned[]): Promise<Map<EvmSigned, string>> {
  if (wallets.length === 0) return new Map();
  const hashes = await readCodeHashes(
    chain.rpc,
    wallets.map(({ payer }) => payer),
  );
  return new Map(
    wallets.map((one, index) => {
      const hash = hashes[index] ?? "0x";
      return [one, /^0x0*$/.test(hash) ? (unwrapSignature(one.proof).deployment?.target ?? hash) : hash];
    }),
  );
}

/**
 * By the form of a signature and what stands at the payer's address. What a wallet's own code says to it is left to the
 * simulation, which asks it exactly as the chain will.
 */
function checkForm(chain: EvmChain, signed: EvmSigned, payer: AccountKind): Verdict {
  const byKey = checkKey(chain, signed);
  const { deployment } = unwrapSignature(signed.proof);
  if (payer === "key" && !deployment) return byKey;
  if (payer === "key" && deployment && !isAllowedFactory(chain, deployment.target))
    return { ok: false, reason: "the account is a wallet that is not deployed, and its factory is not allowed here" };
  const token = chain.tokens.get(signed.asset);
  // Tokens that know v, r and s only ask the key, also where it has delegated to code (EIP-7702).
  if (token?.kind === "eip3009" && !token.bytesSignatures && !byKey.ok)
    return { ok: false, reason: `${token.symbol} takes no signatures of smart wallets` };
  return size(signed.proof) > 0 ? { ok: true, smartWallet: true } : { ok: false, reason: "the signature is empty" };
}

function toMember(chain: EvmChain, signed: EvmSigned, smartWallet: boolean): Member {
  const bytes = (hex: Hex | null) => (hex === null ? null : Buffer.from(hex.slice(2), "hex"));
  const row = { ...signed, signature: bytes(signed.proof), permit: bytes(signed.permit), smart_wallet: smartWallet };
  return { calls: listCalls(chain, row), gas: gasOf(chain, row), alone: smartWallet };
}

/** Refuses payers that have burned gas, and contract wallets while too much was burned by others like them. */
async function checkLimits(
  deps: VerifyDeps,
  chain: EvmChain,
  formal: readonly Formal[],
  verdicts: Map<EvmSigned, Verdict>,
): Promise<Formal[]> {
  if (formal.length === 0) return [];
  const rules = await readGasRules(deps, chain, { forLane: false });
  return formal.filter(({ one, smartWallet, codeHash }) => {
    const isExhausted = smartWallet && (rules.exhausted || rules.codes.has(codeHash ?? ""));
    const reason = rules.barred.has(one.payer) ? BARRED : isExhausted ? WALLETS_EXHAUSTED : undefined;
    if (reason) verdicts.set(one, { ok: false, reason });
    return reason === undefined;
  });
}

/** Plain keys' transfers that failed among the others are asked by themselves: an other one may have been the cause. */
async function askAgain(
  chain: EvmChain,
  passed: readonly Formal[],
  outcomes: Map<Formal, CallOutcome | undefined>,
): Promise<void> {
  const failed = passed.filter((each) => !each.smartWallet && !outcomes.get(each)?.ok);
  const at = { multicall: chain.multicall, from: chain.treasury };
  const again = await simulateAlone(
    chain.rpc,
    at,
    failed.map(({ member }) => member),
  );
  for (const each of failed) outcomes.set(each, again.get(each.member));
}

/** Contract wallets' transfers, as the lane that sends for them would send them now. */
async function simulateWallets(
  deps: VerifyDeps,
  chain: EvmChain,
  passed: readonly Formal[],
  outcomes: Map<Formal, CallOutcome | undefined>,
): Promise<void> {
  const wallets = passed.filter(({ smartWallet }) => smartWallet);
  if (wallets.length === 0) return;
  const baseFee = (await findBaseFee(deps.db, chain.chain)) ?? 0n;
  const { priorityFeePerGas: tip } = chain.network.fees;
  const fees = chooseFees(baseFee, chain.network.fees) ?? {
    maxFeePerGas: baseFee * 2n + tip,
    maxPriorityFeePerGas: tip,
  };
  const from = walletLaneOf(chain);
  await Promise.all(
    wallets.map(async (each) => {
      const transaction = { from, ...buildPayload(chain.multicall, [each.member]), ...fees };
      outcomes.set(each, await simulateTransaction(chain.rpc, chain.multicall, transaction));
    }),
  );
}

async function decide(
  deps: VerifyDeps,
  { one, smartWallet, codeHash }: Formal,
  found: {
    outcome: CallOutcome | undefined;
    refused: ReadonlySet<string>;
    funds: Funds;
    counted: ReadonlySet<string>;
  },
): Promise<Verdict> {
  const { outcome, funds, counted } = found;
  const good: Verdict = { ok: true, smartWallet, codeHash, counted };
  if (found.refused.has(one.payer)) return { ok: false, reason: SCREENED_OUT };
  if (outcome?.ok && funds.take(one)) return good;
  // Another relayer may have made the very same transfer: then the money is here, and that is what we want.
  if (await isSighted(deps.db, one)) return good;
  if (outcome?.ok || !funds.holds(one)) return { ok: false, reason: SHORT };
  if (!outcome) return { ok: false, reason: "the transfer was not simulated" };
  // Our lane has no money for gas: that says nothing about the buyer.
  if ("unfunded" in outcome) return { ok: false, later: true, reason: "the payment cannot be checked at this moment" };
  return { ok: false, reason: `the transfer would fail: ${outcome.reason}` };
}
