import type { Hex } from "viem";
import { z } from "zod";
import { canonicalAddress, canonicalAsset } from "../chains/canonical-ids.ts";
import type { Chain } from "../chains/chain.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { deriveNonce, withdrawalKey } from "../chains/natural-key.ts";
import type { PayoutSigner, UnsignedPayout } from "../chains/payout-signer.ts";
import { requireApprovals } from "./approvals.ts";
import { appendApproved } from "./audit/approved-payouts.ts";
import type { AssetLimits } from "./limits.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import { type Refused, type Statement, statement } from "./protocol.ts";
import {
  findAuthorized,
  insertPayout,
  isOfOtherTreasury,
  listAuthorizedAssets,
  sumWindow,
  wasAuthorized,
} from "./records.ts";
import { refuse } from "./refuse.ts";
import { findLimitRefusal } from "./rules.ts";
import type { SignerDeps } from "./signer-deps.ts";
import {
  draftWithdrawal,
  findReferenceRefusal,
  recordWithdrawal,
  type WithdrawalDraft,
} from "./solana/draft-withdrawal.ts";
import { signWholeTransaction } from "./solana/sign-bytes.ts";
import { inStoreTransaction, type Store } from "./store.ts";

const HOUR_MS = 3_600_000;

/**
 * The file of a withdrawal. `reference` is the operators' own name for it: on an EVM chain it is paid once for each EIP-3009 token and
 * once for all other tokens, and on Solana once for all assets of the cluster.
 */
export const withdrawalFile = z.strictObject({
  asset: z.string(),
  amount: z
    .string()
    .regex(/^[1-9]\d{0,77}$/)
    .transform(BigInt),
  receiver: z.string(),
  reference: z.string().regex(/^[\w.-]{1,64}$/),
  approvals: z.array(statement),
});

/**
 * What makes the withdrawal, which the chain accepts once: a call that any account may send, or on Solana the signed wire bytes
 * of a transaction, in base64.
 */
type Withdrawn = { ok: true; to: Hex; data: Hex } | { ok: true; transaction: string };

/**
 * Signs a withdrawal of the operator's capital that two operators approve, within the limits. It is recorded before it is
 * signed, so that a process that is killed in between signs the same withdrawal again and counts nothing more. A withdrawal that
 * is refused is not recorded. The service books it as an outflow that an operator explains. Throws ChainError when the key does
 * not sign or the chain cannot be read.
 */
export async function withdrawCapital(
  deps: Omit<SignerDeps, "shortPayouts">,
  file: z.output<typeof withdrawalFile>,
): Promise<Withdrawn | Refused> {
  const { amount, reference } = file;
  const asset = canonicalAsset(file.asset);
  const chain = deps.chains.get(chainOfAsset(asset));
  const key = deps.treasuryKeys.get(chainOfAsset(asset));
  if (!chain?.tokens.has(asset) || !key) return refuse("unknown_asset");
  const driver = getChainDriver(chain.chain);
  if (!driver.isAddress(file.receiver)) return refuse("invalid_request", "the receiver is not an address of the chain");
  if (amount > driver.maxAmount) return refuse("invalid_request", "the chain cannot move this amount");
  const receiver = canonicalAddress(chain.chain, file.receiver);
  const withdrawal = { asset, amount, receiver, reference };
  const payout = { asset, amount, receiver, nonce: deriveNonce(deps.deployment, withdrawalKey({ reference })) };
  const { treasury } = chain;
  const asked = findApproval(deps, { withdrawal, payout: { ...payout, treasury } }, file.approvals);
  if ("reason" in asked) return asked;
  const unserved = await deps.checkChain(chain.chain);
  if (unserved) return unserved;

  const draft = await draftWithdrawal(deps, chain, payout);
  if (draft && "reason" in draft) return draft;
  const refused = inStoreTransaction(deps.store, () => {
    // Read again after the chain has answered: a pause applies at once.
    const approval = findApproval(deps, { withdrawal, payout: { ...payout, treasury } }, file.approvals);
    if ("reason" in approval) return approval;
    const at = deps.now();
    const refused =
      (draft && findReferenceRefusal(deps.store, draft)) ??
      findAssetRefusal(deps.store, chain, payout) ??
      authorize(deps, { ...payout, treasury }, { ...approval, reference, at });
    if (!refused && draft) recordWithdrawal(deps.store, draft, at);
    return refused;
  });
  if (refused) return refused;
  const signed = await sign(key, chain, payout, draft);
  const { approvers } = asked;
  if (signed.ok)
    deps.log.info({ asset, amount: String(amount), receiver, reference, approvers }, "withdrawal is signed");
  return signed;
}

/** Returns the asset's limits and the operators who have approved exactly this withdrawal, or why it must not be signed now. */
function findApproval(
  { store, readLimits, deployment, now }: Pick<SignerDeps, "store" | "readLimits" | "deployment" | "now">,
  {
    withdrawal,
    payout,
  }: {
    withdrawal: { asset: string; amount: bigint; receiver: string; reference: string };
    payout: UnsignedPayout & { treasury: string };
  },
  approvals: readonly Statement[],
): Refused | { limits: AssetLimits; approvers: string[] } {
  const limits = readLimits();
  if (!limits) return refuse("limits_invalid");
  if (limits.paused) return refuse("paused");
  const assetLimits = limits.assets[withdrawal.asset];
  if (!assetLimits) return refuse("unknown_asset");
  const { operators } = limits;
  const subject = { action: "withdraw capital", ...withdrawal } as const;
  const against = { operators, deployment, at: now(), isRecorded: wasAuthorized(store, payout) };
  const approved = requireApprovals(against, approvals, subject);
  return "reason" in approved ? approved : { ...approved, limits: assetLimits };
}

/** Returns the refusal if the reference was used for another asset, and the chain makes only one of the two withdrawals. */
function findAssetRefusal(store: Store, chain: Chain, { nonce, asset }: UnsignedPayout): Refused | undefined {
  const recorded = listAuthorizedAssets(store, { nonce, treasury: chain.treasury });
  if (recorded.includes(asset)) return undefined;
  const driver = getChainDriver(chain.chain);
  const other = recorded.find((one) => chainOfAsset(one) === chain.chain && driver.sharesNonces(chain, [one, asset]));
  if (other === undefined) return undefined;
  return refuse(
    "invalid_request",
    `the reference was used for ${other}, and the chain pays one of the two: choose another one`,
  );
}

/**
 * Records a withdrawal if the limits allow it. Each approval of a reference with another receiver or amount has its own record,
 * and all of them count with the highest amount.
 */
function authorize(
  { store }: Pick<SignerDeps, "store">,
  payout: UnsignedPayout & { treasury: string },
  {
    limits,
    approvers,
    reference,
    at,
  }: { limits: AssetLimits; approvers: readonly string[]; reference: string; at: Date },
): Refused | undefined {
  const { asset, amount } = payout;
  if (isOfOtherTreasury(store, payout)) return refuse("treasury_changed");
  const before = findAuthorized(store, payout);
  const counted = amount > before ? amount - before : 0n;
  const assetHour = sumWindow(store, { asset }, { at, windowMs: HOUR_MS });
  const amounts = { amount, increase: counted, assetHour, merchantDay: undefined, newMerchantsDay: undefined };
  const reason = findLimitRefusal(limits, amounts);
  if (reason) return refuse(reason);
  if (wasAuthorized(store, payout)) return undefined;
  const row = { ...payout, kind: "withdrawal", merchantId: null, paymentId: null, counted };
  insertPayout(store, row, at);
  appendApproved(store, { row, action: "withdrawal.signed", subject: reference, approvers, at });
  return undefined;
}

async function sign(
  key: PayoutSigner,
  chain: Chain,
  payout: UnsignedPayout,
  draft: WithdrawalDraft | undefined,
): Promise<Withdrawn | Refused> {
  if (draft) return signWholeTransaction(draft.chain, key, draft.transaction);
  const signature = await key.sign(payout);
  if (signature === null) throw new Error(`${chain.chain} signs no payouts`);
  return { ok: true, ...getChainDriver(chain.chain).encodePayout(chain, payout, signature) };
}
