import { canonicalAddress } from "../../chains/canonical-ids.ts";
import { deriveNonce, type KeyParts } from "../../chains/natural-key.ts";
import { findUnreadEpoch } from "../../db/epoch.ts";
import { isNonceUnclaimed } from "../../db/queries/payout-nonces.ts";
import type { Db } from "../../db/tables.ts";
import type { Networks } from "../../runtime/networks/read-networks.ts";
import { chainOf } from "./sign-payout.ts";

/**
 * Returns the reason if a refund or return may have been sent before a restore of the database, which may show it as waiting or
 * not at all; undefined otherwise. It may have been until the chain has been reread, and was when the chain shows its nonce.
 * @param of.key the natural key of the refund or return; undefined when it names neither a payment nor a movement
 */
export async function findSentReason(
  { networks }: { networks: Pick<Networks, "deployment" | "chains"> },
  db: Db,
  { asset, key }: { asset: string; key: KeyParts | undefined },
): Promise<string | undefined> {
  const chain = chainOf(asset);
  if (await findUnreadEpoch(db, chain)) return "the chain is being reread after a restore: try again later";
  if (!key) return undefined;
  const nonce = deriveNonce(networks.deployment, key);
  const network = networks.chains.find((one) => one.chain === chain);
  // Without the chain's entry the treasury is unknown, and every movement with the nonce counts.
  const payer = network && canonicalAddress(chain, network.treasury.address);
  return (await isNonceUnclaimed(db, { chain, payer, nonce })) ? "the chain shows that the refund was sent" : undefined;
}
