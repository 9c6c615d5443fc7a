import { chainOfAsset, payoutNonce } from "./payout-nonce.ts";
import { signAuthorized } from "./sign-payouts.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { signClosingBytes, signPayoutBytes, withCluster } from "./solana/sign-bytes.ts";
import type { TreasurySigner } from "./treasury-signer.ts";

type EmbeddedDeps = Pick<SignerDeps, "treasuryKeys" | "chains" | "deployment" | "log">;

/**
 * Creates a signer in the process that asks for payouts (`SIGNER=embedded`). It signs whatever it is asked for: who controls
 * the database controls the treasury. For the demo, development and tests.
 */
export function createEmbeddedSigner(deps: EmbeddedDeps): TreasurySigner {
  return {
    signPayouts: (payouts) =>
      signAuthorized(
        deps,
        payouts.map((payout) => ({ ...payout, nonce: payoutNonce(deps.deployment, payout) })),
      ),
    claimDeposits: async (deposits) => deposits.map(() => ({ ok: true })),
    claimDestinations: async ({ destinations, statements }) => ({
      destinations: destinations.map(() => ({ state: "applied", appliesAt: null })),
      statements: statements.map(() => ({ ok: true, detail: "" })),
    }),
    readAuditHead: async () => undefined,
    // Without a limits file there is no ceiling and no cold address.
    moveExcess: async () => ({ ok: true, transfer: null }),
    signPayoutTransaction: (request) => withCluster(deps, chainOfAsset(request.asset), signPayoutBytes, request),
    signMarkerClosing: (request) => withCluster(deps, request.chain, signClosingBytes, request),
    close: () => undefined,
  };
}
