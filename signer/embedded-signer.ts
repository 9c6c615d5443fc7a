import { signAuthorized } from "./sign-payouts.ts";
import type { SignerDeps } from "./signer-deps.ts";
import type { TreasurySigner } from "./treasury-signer.ts";

/**
 * Creates a signer in the process that asks for payouts (`SIGNER=embedded`). It signs whatever it is asked for: who controls
 * the database controls the treasury. For the demo, development and tests.
 */
export function createEmbeddedSigner(deps: Pick<SignerDeps, "treasuryKeys" | "deployment" | "log">): TreasurySigner {
  return {
    signPayouts: (payouts) => signAuthorized(deps, payouts),
    claimDeposits: async (deposits) => deposits.map(() => ({ ok: true })),
    claimDestinations: async ({ destinations, statements }) => ({
      destinations: destinations.map(() => ({ state: "applied", appliesAt: null })),
      statements: statements.map(() => ({ ok: true, detail: "" })),
    }),
    close: () => undefined,
  };
}
