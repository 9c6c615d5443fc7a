import type { OptionRow } from "../../db/queries/payment-options.ts";
import { attachToTransfer, type TransferSignatures } from "../../db/queries/payment-transfers.ts";
import { getResultReader } from "../../transfers/find-transfer-driver.ts";
import { checkSignature } from "../../transfers/verifier.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { enqueueRelays } from "./relay-transfers.ts";
import { readResults, readSigned } from "./wallet-results.ts";

/**
 * Returns the signatures of a confirm if they are valid key signatures for the option. Returns undefined for a push,
 * for a contract wallet (only the chain can verify its signature), and on Solana (where the money found is already
 * final).
 */
export function readSignatures(
  deps: Pick<PaymentDeps, "chains">,
  option: OptionRow,
  results: unknown,
): TransferSignatures | undefined {
  const reader = getResultReader(option.chain);
  if (!reader.canStillRelay(option.kind)) return undefined;
  if (!checkSignature(deps.chains, readSigned(option, results)).ok) return undefined;
  const { signature, permit = null } = reader.toSignedMembers(readResults(results), undefined);
  return { signature, permit };
}

/**
 * Attaches a confirm's signatures to a transfer that another relayer has submitted before the confirm arrived. If a
 * reorg removes that relayer's transaction, or has removed it already, we relay the transfer ourselves.
 */
export async function attachSignatures(deps: PaymentDeps, option: OptionRow, results: unknown): Promise<void> {
  const signatures = readSignatures(deps, option, results);
  if (!signatures) return;
  const moved = await attachToTransfer(deps.db, { paymentId: option.payment_id, ...signatures, at: deps.now() });
  await enqueueRelays(
    deps,
    moved.map((transferId) => ({ chain: option.chain, transferId })),
  );
}
