import { type Chains, getChain } from "../chains/open.ts";
import { judgePush } from "./push.ts";
import { checkSolanaSignature, judgeSolana } from "./solana/verify.ts";
import type { Signed, Verdict } from "./verdict.ts";
import { checkKey, type EvmSigned, type VerifyDeps, verifyEvm } from "./verify-evm.ts";

/** Verifies authorizations. */
export type Verifier = {
  /** By a key's signature alone; asks no chain. */
  checkSignature(signed: Signed): Verdict;
  /**
   * By the signature, and by making the transfers in a simulation (balance, block lists, pause, used nonces): two calls
   * per chain for plain keys. Payers that are code are told apart (`byCode`) unless `by` is `wallet`: then each of them
   * is asked as well what it says to its signature. Results in the order given; of one payer's transfers, the earlier
   * ones take its balance first. Throws ChainFault when a chain cannot be asked: then nothing is known, and nothing
   * refused.
   */
  verify(signed: readonly Signed[], by: "key" | "wallet"): Promise<Verdict[]>;
};

/** Transfers in one simulation; more are simulated in several. */
const SIMULATED = 100;
/** Pushes asked for at the same time. */
const PUSHES = 16;

/** Makes a verifier over open chains. */
export function createVerifier(deps: VerifyDeps): Verifier {
  return {
    checkSignature: (signed) => checkSignature(deps.chains, signed),
    verify: async (signed, by) => {
      const verdicts = new Map<Signed, Verdict>();
      for (const [id, all] of Map.groupBy(signed, (one) => one.chain))
        for (const [one, verdict] of await verifyOn(deps, id, all, by)) verdicts.set(one, verdict);
      return signed.map((one) => verdicts.get(one) ?? { ok: false, reason: "not verified" });
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
  const verdicts: [Signed, Verdict][] = [];
  for (let from = 0; from < pushes.length; from += PUSHES) {
    const some = pushes.slice(from, from + PUSHES);
    verdicts.push(
      ...(await Promise.all(some.map(async (one) => [one, await judgePush(chain, one)] as [Signed, Verdict]))),
    );
  }
  const relayed = all.filter(({ kind }) => kind !== "push") as EvmSigned[];
  for (let from = 0; from < relayed.length; from += SIMULATED)
    verdicts.push(...(await verifyEvm(deps, chain, { all: relayed.slice(from, from + SIMULATED), by })));
  return verdicts;
}

/** By a plain key's signature alone, on Solana also by the transaction it is over; asks no chain. */
export function checkSignature(chains: Chains, signed: Signed): Verdict {
  const chain = getChain(chains, signed.chain);
  return chain.family === "solana" ? checkSolanaSignature(chain, signed) : checkKey(chain, signed as EvmSigned);
}
