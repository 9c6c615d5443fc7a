import { type Chains, getChain } from "../chains/open.ts";
import { judgePush } from "./push.ts";
import { checkSolanaSignature, judgeSolana } from "./solana/verify.ts";
import type { Signed, Verdict } from "./verdict.ts";
import { checkKey, type EvmSigned, type VerifyDeps, verifyEvm } from "./verify-evm.ts";

/** Verifies authorizations. */
export type Verifier = {
  /** Verifies the signature of a plain key alone. Calls no chain. */
  checkSignature(signed: Signed): Verdict;
  /**
   * Verifies the signatures, and simulates the transfers (balance, block lists, pause, used nonces) with two calls per chain
   * for plain keys. Payers that are contracts are only reported as such (`byCode`) unless `by` is `wallet`; then the
   * simulation also runs each contract's check of its signature. Returns the results in the order given. Earlier transfers
   * of a payer take its balance first. Throws ChainFault when a chain cannot be read; no transfer is rejected then.
   */
  verify(signed: readonly Signed[], by: "key" | "wallet"): Promise<Verdict[]>;
};

/** Transfers in one simulation at most. */
const MAX_SIMULATED = 100;
/** Pushes that are verified concurrently. */
const CONCURRENT_PUSHES = 16;

/** Creates a verifier for the open chains. */
export function createVerifier(deps: VerifyDeps): Verifier {
  return {
    checkSignature: (signed) => checkSignature(deps.chains, signed),
    verify: async (signed, by) => {
      const results = new Map<Signed, Verdict>();
      for (const [id, all] of Map.groupBy(signed, (one) => one.chain))
        for (const [one, result] of await verifyOn(deps, id, all, by)) results.set(one, result);
      return signed.map((one) => results.get(one) ?? { ok: false, reason: "not verified" });
    },
  };
}

async function verifyOn(
  deps: VerifyDeps,
  id: string,
  all: readonly Signed[],
  by: "key" | "wallet",
): Promise<[Signed, Verdict][]> {
  const chain = getChain(deps.chains, id);
  if (chain.family === "solana") return judgeSolana(deps, chain, all);
  const pushes = all.filter(({ kind }) => kind === "push");
  const results: [Signed, Verdict][] = [];
  for (let from = 0; from < pushes.length; from += CONCURRENT_PUSHES) {
    const some = pushes.slice(from, from + CONCURRENT_PUSHES);
    results.push(
      ...(await Promise.all(some.map(async (one) => [one, await judgePush(chain, one)] as [Signed, Verdict]))),
    );
  }
  const relayed = all.filter(({ kind }) => kind !== "push") as EvmSigned[];
  for (let from = 0; from < relayed.length; from += MAX_SIMULATED)
    results.push(...(await verifyEvm(deps, chain, { all: relayed.slice(from, from + MAX_SIMULATED), by })));
  return results;
}

/** Verifies a plain key's signature, on Solana also the transaction that it signs. Calls no chain. */
export function checkSignature(chains: Chains, signed: Signed): Verdict {
  const chain = getChain(chains, signed.chain);
  return chain.family === "solana" ? checkSolanaSignature(chain, signed) : checkKey(chain, signed as EvmSigned);
}
