import type { Hex } from "viem";
import { hashAuthorization } from "../chains/evm/eip3009.ts";
import { simulateEach } from "../chains/evm/multicall.ts";
import { findSignatureFault, recoverSigner } from "../chains/evm/signature.ts";
import { getChain } from "../chains/open.ts";
import { isSighted } from "../db/sightings.ts";
import { type AuthorizationRow, toAuthorization, toCall } from "./authorization.ts";
import type { TransferDeps } from "./deps.ts";

/** An authorization as a buyer's wallet has signed it. */
export type Signed = AuthorizationRow & { chain: string; asset: string; signature: Hex };
export type Verdict = { ok: true } | { ok: false; reason: string };

/** Judges authorizations. */
export type Verifier = {
  /** By the signature alone; asks nobody. */
  checkSignature(signed: Signed): Verdict;
  /**
   * By the signature, and by making the transfers in a simulation (balance, block lists, pause, used nonces), one call
   * per chain. Verdicts in the order asked. Throws ChainFault when a chain cannot be asked: then nothing is known, and
   * nothing refused.
   */
  verify(signed: readonly Signed[]): Promise<Verdict[]>;
};

/** Transfers in one simulation; more are simulated in several. */
const SIMULATED = 50;

/** Makes a verifier over open chains. */
export function createVerifier(deps: Pick<TransferDeps, "db" | "chains">): Verifier {
  const checkSignature = (signed: Signed): Verdict => {
    const token = getChain(deps.chains, signed.chain).tokens.get(signed.asset);
    if (!token) throw new Error(`${signed.asset} is no longer in the networks file`);
    const fault = findSignatureFault(signed.signature);
    if (fault) return { ok: false, reason: fault };
    const signer = recoverSigner(hashAuthorization(token.separator, toAuthorization(signed)), signed.signature);
    return signer === signed.payer
      ? { ok: true }
      : { ok: false, reason: "the signature is not the account's over this payment" };
  };
  return {
    checkSignature,
    verify: async (signed) => {
      const verdicts = new Map(signed.map((one) => [one, checkSignature(one)]));
      const byChain = Map.groupBy(
        signed.filter((one) => verdicts.get(one)?.ok),
        (one) => one.chain,
      );
      for (const [chain, all] of byChain)
        for (let from = 0; from < all.length; from += SIMULATED)
          for (const [one, verdict] of await simulate(deps, chain, all.slice(from, from + SIMULATED)))
            verdicts.set(one, verdict);
      return signed.map((one) => verdicts.get(one) ?? { ok: false, reason: "not judged" });
    },
  };
}

async function simulate(
  deps: Pick<TransferDeps, "db" | "chains">,
  chainId: string,
  all: readonly Signed[],
): Promise<[Signed, Verdict][]> {
  const chain = getChain(deps.chains, chainId);
  const calls = all.map((one) => ({
    ...toCall(one, one.signature),
    gas: chain.tokens.get(one.asset)?.transferGas ?? 150_000,
  }));
  const outcomes = await simulateEach(chain.rpc, { multicall: chain.multicall, from: chain.treasury }, calls);
  return Promise.all(
    all.map(async (one, index): Promise<[Signed, Verdict]> => {
      const outcome = outcomes[index];
      if (!outcome) throw new Error("a simulation gave fewer answers than it was asked");
      if (outcome.ok) return [one, { ok: true }];
      // Somebody else may have relayed the very same authorization: then the money is here, and that is what we want.
      if (await isSighted(deps.db, one)) return [one, { ok: true }];
      return [one, { ok: false, reason: `the transfer would fail: ${outcome.reason}` }];
    }),
  );
}
