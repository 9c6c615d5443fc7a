import { ChainError } from "../../chains/errors.ts";
import type { PayoutSigner } from "../../chains/payout-signer.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { MAX_MARKERS_PER_CLOSE } from "../../chains/solana/payout-markers.ts";
import {
  buildMarkerClosing,
  buildPayoutTransaction,
  messageOf,
  type PayoutTransaction,
} from "../../chains/solana/treasury-transactions.ts";
import { parseTransaction, withSignature } from "../../chains/solana/wire-format.ts";
import type { Refused } from "../protocol.ts";
import { refuse } from "../refuse.ts";
import type { SignerDeps } from "../signer-deps.ts";
import type { MarkerClosingRequest, MarkerClosingResult, PayoutTransactionResult } from "./transaction-protocol.ts";

/** Builds a transaction of payouts and signs it, without any check. */
export function signPayoutBytes(
  chain: SolanaChain,
  key: PayoutSigner,
  transaction: PayoutTransaction,
): Promise<PayoutTransactionResult> {
  return sign(key, buildPayoutTransaction(chain, transaction));
}

/** Builds a transaction of which the treasury is the only signer. Returns its signed wire bytes in base64, without any check. */
export async function signWholeTransaction(
  chain: SolanaChain,
  key: PayoutSigner,
  transaction: PayoutTransaction,
): Promise<{ ok: true; transaction: string } | Refused> {
  const unsigned = parseTransaction(buildPayoutTransaction(chain, transaction));
  if ("error" in unsigned) throw new Error(`a transaction that we built cannot be parsed: ${unsigned.error}`);
  const signed = await sign(key, unsigned.bytes);
  if (!signed.ok) return signed;
  const bytes = withSignature(unsigned, chain.treasury, Buffer.from(signed.signature, "base64"));
  return { ok: true, transaction: Buffer.from(bytes).toString("base64") };
}

/** Builds a transaction that closes the first of the markers, as many as fit, and signs it without any check. */
export async function signClosingBytes(
  chain: SolanaChain,
  key: PayoutSigner,
  request: MarkerClosingRequest,
): Promise<MarkerClosingResult> {
  const markers = request.markers.slice(0, MAX_MARKERS_PER_CLOSE);
  const signed = await sign(key, buildMarkerClosing(chain, { ...request, markers }));
  return signed.ok ? { ...signed, addresses: markers.map(({ address }) => address) } : signed;
}

async function sign({ signMessage }: PayoutSigner, unsigned: Uint8Array): Promise<PayoutTransactionResult> {
  if (!signMessage) throw new Error("the treasury of a Solana cluster has no key that signs transactions");
  try {
    return { ok: true, signature: Buffer.from(await signMessage(messageOf(unsigned))).toString("base64") };
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    return refuse("signer_unavailable", error.message);
  }
}

/** Signs a request with the treasury's key of its cluster. */
export async function withCluster<Q, R>(
  { chains, treasuryKeys }: Pick<SignerDeps, "chains" | "treasuryKeys">,
  id: string,
  sign: (chain: SolanaChain, key: PayoutSigner, request: Q) => Promise<R>,
  request: Q,
): Promise<R | Refused> {
  const [chain, key] = [chains.get(id), treasuryKeys.get(id)];
  if (chain?.namespace !== "solana") return refuse("unknown_asset", `the signer's networks file lacks ${id}`);
  return key ? sign(chain, key, request) : refuse("signer_unavailable", `the treasury's key of ${id} is not open`);
}
