import { withCallPriority } from "../chains/call-priority.ts";
import type { Chains } from "../chains/chain.ts";
import { getChain } from "../chains/open-chains.ts";
import { getTransferDriver } from "./find-transfer-driver.ts";
import type { Signed, VerificationResult, VerifyDeps } from "./verification.ts";

/** Verifies authorizations. */
export type Verifier = {
  /** Verifies the signature of a plain key alone. Calls no chain. */
  checkSignature(signed: Signed): VerificationResult;
  /**
   * Verifies the signatures, and simulates the transfers (balance, block lists, pause, used nonces) with two calls per chain
   * for plain keys. Payers that are contracts are only reported as such (`byCode`) unless `by` is `wallet`; then the
   * simulation also runs each contract's check of its signature. Returns the results in the order given. Earlier transfers
   * of a payer take its balance first. Throws ChainError when a chain cannot be read; no transfer is rejected then.
   */
  verify(signed: readonly Signed[], by: "key" | "wallet"): Promise<VerificationResult[]>;
};

/** Creates a verifier for the open chains. */
export function createVerifier(deps: VerifyDeps): Verifier {
  return {
    checkSignature: (signed) => checkSignature(deps.chains, signed),
    verify: (signed, by) =>
      withCallPriority("verification", async (): Promise<VerificationResult[]> => {
        const results = new Map<Signed, VerificationResult>();
        for (const [id, all] of Map.groupBy(signed, (one) => one.chain))
          for (const [one, result] of await getTransferDriver(getChain(deps.chains, id)).verify(deps, all, by))
            results.set(one, result);
        return signed.map((one) => results.get(one) ?? { ok: false, reason: "not verified" });
      }),
  };
}

/** Verifies a plain key's signature, on Solana also the transaction that it signs. Calls no chain. */
export function checkSignature(chains: Chains, signed: Signed): VerificationResult {
  return getTransferDriver(getChain(chains, signed.chain)).checkSignature(signed);
}
