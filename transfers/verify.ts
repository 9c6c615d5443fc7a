import type { Hex } from "viem";
import { hashAuthorization } from "../chains/evm/eip3009.ts";
import { type Call, type CallOutcome, simulateCalls } from "../chains/evm/multicall.ts";
import { findSignatureFault, recoverSigner } from "../chains/evm/signature.ts";
import { getChain } from "../chains/open.ts";
import { isSighted } from "../db/sightings.ts";
import { type AuthorizationRow, toAuthorization, toCall } from "./authorization.ts";
import type { TransferDeps } from "./deps.ts";
import { gather } from "./gather.ts";

/** An authorization as a buyer's wallet has signed it. */
export type Signed = AuthorizationRow & { chain: string; asset: string; signature: Hex };
export type Verdict = { ok: true } | { ok: false; reason: string };

/** Judges authorizations. Throws ChainFault when the chain cannot be asked: then nothing is known, and nothing refused. */
export type Verifier = {
  /** By the signature alone; asks nobody. */
  checkSignature(signed: Signed): Verdict;
  /** By the signature, and by making the transfer in a simulation (balance, block lists, pause, used nonces). */
  verify(signed: Signed): Promise<Verdict>;
};

/** Verifications that go into one eth_call, and how long the first waits for others, milliseconds. */
const GATHERED = { most: 50, waitMs: 4 };

/** Makes a verifier whose simulations are gathered per chain. */
export function createVerifier(deps: Pick<TransferDeps, "db" | "chains">): Verifier {
  const simulators = new Map(
    [...deps.chains.values()].map((chain) => [
      chain.chain,
      gather<Call, CallOutcome>(
        (calls) => simulateCalls(chain.rpc, { multicall: chain.multicall, from: chain.treasury }, calls),
        GATHERED,
      ),
    ]),
  );
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
      const checked = checkSignature(signed);
      if (!checked.ok) return checked;
      const outcome = await simulators.get(signed.chain)?.(toCall(signed, signed.signature));
      if (!outcome || outcome.ok) return { ok: true };
      // Somebody else may have relayed the very same authorization: then the money is here, and that is what we want.
      const { chain, token, payer, authorization_nonce: nonce } = signed;
      if (await isSighted(deps.db, { chain, token, payer, nonce })) return { ok: true };
      return { ok: false, reason: `the transfer would fail: ${outcome.reason}` };
    },
  };
}
