import type { Hex } from "viem";
import { parseAssetId } from "../chains/caip.ts";
import { deriveNonce, type KeyParts, refundKey, returnKey, settlementKey } from "../chains/natural-key.ts";
import type { PayoutRequest } from "./protocol.ts";

/** Returns the chain (CAIP-2) of an asset (CAIP-19). */
export function chainOfAsset(asset: string): string {
  return parseAssetId(asset)?.chain ?? asset;
}

/** A payout, and the nonce by which the chain makes it once. */
export type PayoutWithNonce = PayoutRequest & { nonce: Hex };

/** Returns the nonce of a payout on chain. The signer and the worker derive it from the same natural key. */
export function payoutNonce(deployment: string, payout: PayoutRequest): Hex {
  return deriveNonce(deployment, keyOf(payout));
}

function keyOf(payout: PayoutRequest): KeyParts {
  switch (payout.kind) {
    case "settlement":
      return settlementKey(payout);
    case "refund":
      return refundKey(payout);
    case "return":
      return returnKey({ ...payout, chain: chainOfAsset(payout.asset) });
  }
}
