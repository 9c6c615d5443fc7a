import { canonicalAddress, canonicalAsset } from "../chains/canonical-ids.ts";
import type { Chain } from "../chains/chain.ts";
import { ChainError, isTransientChainError } from "../chains/errors.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { type ColdTransfer, coldNonce, findLastColdTransfer, insertColdTransfer } from "./cold-transfers.ts";
import type { HotBalance } from "./limits.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import type { ExcessRequest, ExcessResult, Refused } from "./protocol.ts";
import { sumWindow } from "./records.ts";
import { refuse } from "./refuse.ts";
import { findRetirementRefusal } from "./retired-treasuries.ts";
import { findExcess } from "./rules.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { wasMadeBy } from "./solana/closed-payouts.ts";
import { inStoreTransaction } from "./store.ts";

const HOUR_MS = 3_600_000;

/** An asset whose excess moves to a cold address that the limits file names. */
type Moved = { chain: Chain; asset: string; hotBalance: HotBalance; receiver: string };

/**
 * Signs the transfer of what the treasury holds above the ceiling of an asset. The balance is that of the final state at the
 * signer's own endpoints. A transfer is recorded before it is signed, and is the only one until the same final state shows it as
 * made: every request until then has the same answer, also after the process was killed in between. On Solana the record
 * authorizes the transaction that makes the transfer (`isColdTransfer`).
 */
export async function moveExcess(deps: SignerDeps, { asset, pending }: ExcessRequest): Promise<ExcessResult> {
  const moved = findMoved(deps, canonicalAsset(asset));
  if (moved === undefined) return { ok: true, transfer: null };
  const transfer = "reason" in moved ? moved : await findTransfer(deps, moved, pending);
  if (transfer === undefined) return { ok: true, transfer: null };
  const result = "reason" in transfer ? transfer : await sign(deps, transfer);
  if (!result.ok) {
    deps.metrics.signerRefusals.inc({ reason: result.reason });
    deps.log.warn({ asset, reason: result.reason, detail: result.detail }, "excess is not moved");
  }
  return result;
}

/**
 * Returns true for the newest recorded transfer of an asset's excess, with this nonce and amount, while the limits file names its
 * receiver as the cold address.
 */
export function isColdTransfer(
  deps: SignerDeps,
  of: { asset: string; nonce: string; amount: bigint; receiver: string },
): boolean {
  const moved = findMoved(deps, of.asset);
  if (moved === undefined || "reason" in moved || moved.receiver !== of.receiver) return false;
  const last = findLastColdTransfer(deps.store, { treasury: moved.chain.treasury, asset: of.asset });
  return last?.amount === of.amount && last.receiver === of.receiver && coldNonce(deps.deployment, last) === of.nonce;
}

/** Returns undefined for an asset of which the limits file moves nothing. */
function findMoved({ readLimits, chains, store }: SignerDeps, asset: string): Moved | Refused | undefined {
  const limits = readLimits();
  if (!limits) return refuse("limits_invalid");
  if (limits.paused) return refuse("paused");
  const chain = chains.get(chainOfAsset(asset));
  const hotBalance = limits.assets[asset]?.hotBalance;
  if (!chain?.tokens.has(asset)) return refuse("unknown_asset");
  if (!hotBalance?.cold) return undefined;
  const retired = findRetirementRefusal(store, chain);
  if (retired) return retired;
  const receiver = canonicalAddress(chain.chain, hotBalance.cold.address);
  const own = getChainDriver(chain.chain).listOwnAddresses(chain.network);
  if (own.includes(receiver)) return refuse("limits_invalid", "the cold address is an account of the deployment");
  return { chain, asset, hotBalance, receiver };
}

/** Returns the transfer that is not made yet, or records the next one if there is an excess. */
async function findTransfer(
  deps: SignerDeps,
  moved: Moved,
  pending: bigint,
): Promise<ColdTransfer | Refused | undefined> {
  const { chain, asset, receiver, hotBalance } = moved;
  const unserved = await deps.checkChain(chain.chain);
  if (unserved) return unserved;
  const { treasury } = chain;
  const last = findLastColdTransfer(deps.store, { treasury, asset });
  const nonce = last && coldNonce(deps.deployment, last);
  try {
    const { height, balance, ...read } = await getChainDriver(chain.chain).readFinalBalance(chain, { asset, nonce });
    return inStoreTransaction(deps.store, () => {
      // A concurrent request may have recorded the next one while the chain was read.
      const newest = findLastColdTransfer(deps.store, { treasury, asset });
      const isMade = read.isMade || wasMadeBy(deps, { chain: chain.chain, payoutNonce: nonce, height });
      const open = isMade && newest?.number === last?.number ? undefined : newest;
      // More than the treasury has can never be moved: less is recorded with the same number, of which the chain accepts one.
      const isCovered = open !== undefined && open.amount <= balance;
      if (isCovered && open.receiver === receiver) return open;
      const at = deps.now();
      const recent = sumWindow(deps.store, { asset }, { at, windowMs: HOUR_MS });
      const needed = recent > pending ? recent : pending;
      const amount = isCovered ? open.amount : findExcess(hotBalance, { balance, needed });
      if (amount === 0n) return undefined;
      const next = { treasury, asset, number: open?.number ?? (newest?.number ?? 0) + 1, amount, receiver };
      insertColdTransfer(deps.store, next, at);
      deps.metrics.signerColdTransfers.inc({ asset });
      deps.log.info({ ...next, amount: String(amount) }, "excess moves to the cold address");
      return next;
    });
  } catch (err) {
    if (!isTransientChainError(err)) throw err;
    deps.log.warn({ err, chain: chain.chain }, "treasury's balance cannot be read");
    return refuse("chain_unavailable");
  }
}

async function sign(deps: SignerDeps, { asset, number, amount, receiver }: ColdTransfer): Promise<ExcessResult> {
  const key = deps.treasuryKeys.get(chainOfAsset(asset));
  if (!key) return refuse("signer_unavailable", `the treasury's key of ${chainOfAsset(asset)} is not open`);
  try {
    const nonce = coldNonce(deps.deployment, { asset, number });
    const signature = await key.sign({ asset, amount, receiver, nonce });
    return { ok: true, transfer: { number, amount, receiver, signature } };
  } catch (err) {
    if (!(err instanceof ChainError)) throw err;
    return refuse("signer_unavailable", err.message);
  }
}
