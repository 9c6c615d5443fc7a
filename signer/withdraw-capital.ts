import type { Hex } from "viem";
import { z } from "zod";
import { canonicalAddress, canonicalAsset } from "../chains/canonical-ids.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { deriveNonce, withdrawalKey } from "../chains/natural-key.ts";
import { REQUIRED_APPROVALS, verifyApprovals } from "./approvals.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import { type Refused, statement } from "./protocol.ts";
import { findAuthorized, insertPayout, isOfOtherTreasury, sumWindow } from "./records.ts";
import { refuse } from "./refuse.ts";
import { findLimitRefusal } from "./rules.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { inStoreTransaction } from "./store.ts";

const HOUR_MS = 3_600_000;

/** The file of a withdrawal. `reference` is the operators' own name for it: a reference is paid once for each asset. */
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

/** A call that any account may send, and that the chain accepts once. */
type Withdrawn = { ok: true; to: Hex; data: Hex };

/**
 * Signs a withdrawal of the operator's capital that two operators approve, within the limits. Returns the call that makes it; the
 * service books it as an outflow that an operator explains. Throws ChainError when the key does not sign.
 */
export async function withdrawCapital(
  deps: SignerDeps,
  file: z.output<typeof withdrawalFile>,
): Promise<Withdrawn | Refused> {
  const limits = deps.readLimits();
  if (!limits) return refuse("limits_invalid");
  if (limits.paused) return refuse("paused");
  const { amount, reference, approvals } = file;
  const asset = canonicalAsset(file.asset);
  const chain = deps.chains.get(chainOfAsset(asset));
  const assetLimits = limits.assets[asset];
  const key = deps.treasuryKeys.get(chainOfAsset(asset));
  if (!chain?.tokens.has(asset) || !assetLimits || !key) return refuse("unknown_asset");
  const unserved = await deps.checkChain(chain.chain);
  if (unserved) return unserved;
  const receiver = canonicalAddress(chain.chain, file.receiver);
  const subject = { action: "withdraw capital", asset, amount, receiver, reference } as const;
  const { operators } = limits;
  const approvers = verifyApprovals({ operators, deployment: deps.deployment }, approvals, subject);
  if (approvers.length < REQUIRED_APPROVALS)
    return refuse("approval_missing", `${approvers.length} of ${REQUIRED_APPROVALS} operators have approved`);

  const nonce = deriveNonce(deps.deployment, withdrawalKey({ reference }));
  const refused = inStoreTransaction(deps.store, () => {
    const at = deps.now();
    const { treasury } = chain;
    if (isOfOtherTreasury(deps.store, { nonce, asset, treasury })) return refuse("treasury_changed");
    const before = findAuthorized(deps.store, { nonce, asset });
    const counted = amount > before ? amount - before : 0n;
    const assetHour = sumWindow(deps.store, { asset }, { at, windowMs: HOUR_MS });
    const amounts = { amount, increase: counted, assetHour, merchantDay: undefined, isNewMerchant: false };
    const reason = findLimitRefusal(assetLimits, amounts);
    if (reason) return refuse(reason);
    const of = { kind: "withdrawal", merchantId: null, paymentId: null };
    if (counted > 0n) insertPayout(deps.store, { ...of, nonce, treasury, asset, amount, counted, receiver }, at);
    return undefined;
  });
  if (refused) return refused;
  const payout = { asset, amount, receiver, nonce };
  const signature = await key.sign(payout);
  if (signature === null) return refuse("unknown_asset", `withdrawals are not supported on ${chain.chain}`);
  deps.log.info({ asset, amount: String(amount), receiver, reference, approvers }, "withdrawal is signed");
  return { ok: true, ...getChainDriver(chain.chain).encodePayout(chain, payout, signature) };
}
