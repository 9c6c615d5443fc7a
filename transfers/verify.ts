import { type Hex, size } from "viem";
import type { Member } from "../chains/evm/multicall.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { findSignatureFault, recoverSigner } from "../chains/evm/signature.ts";
import { type AccountKind, readAccountKinds, unwrapSignature } from "../chains/evm/wallets.ts";
import { type Chains, getChain } from "../chains/open.ts";
import { isSighted } from "../db/sightings.ts";
import { hashRow, isAllowedFactory, listCalls } from "./authorization.ts";
import type { TransferDeps } from "./deps.ts";
import { judgePush } from "./push.ts";
import { SCREENED_OUT, simulateScreened } from "./screening.ts";
import { checkSolanaSignature, judgeSolana } from "./solana/verify.ts";
import type { Signed, Verdict } from "./verdict.ts";

type EvmSigned = Signed & { proof: Hex };

/** Judges authorizations. */
export type Verifier = {
  /** By a key's signature alone; asks nobody. */
  checkSignature(signed: Signed): Verdict;
  /**
   * By the signature, and by making the transfers in a simulation (balance, block lists, pause, used nonces, and what
   * wallets that are code say to their signatures): two calls per chain. Verdicts in the order asked. Throws ChainFault
   * when a chain cannot be asked: then nothing is known, and nothing refused.
   */
  verify(signed: readonly Signed[]): Promise<Verdict[]>;
};

type Deps = Pick<TransferDeps, "db" | "chains" | "screeningList" | "metrics">;

/** Transfers in one simulation; more are simulated in several. */
const SIMULATED = 100;

/** Makes a verifier over open chains. */
export function createVerifier(deps: Deps): Verifier {
  return {
    checkSignature: (signed) => checkSignature(deps.chains, signed),
    verify: async (signed) => {
      const verdicts = new Map<Signed, Verdict>();
      for (const [id, all] of Map.groupBy(signed, (one) => one.chain)) {
        const chain = getChain(deps.chains, id);
        if (chain.family === "solana") {
          for (const [one, verdict] of await judgeSolana(deps, chain, all)) verdicts.set(one, verdict);
          continue;
        }
        for (const one of all.filter(({ kind }) => kind === "push")) verdicts.set(one, await judgePush(chain, one));
        const relayed = all.filter(({ kind }) => kind !== "push") as EvmSigned[];
        for (let from = 0; from < relayed.length; from += SIMULATED)
          for (const [one, verdict] of await judge(deps, chain, relayed.slice(from, from + SIMULATED)))
            verdicts.set(one, verdict);
      }
      return signed.map((one) => verdicts.get(one) ?? { ok: false, reason: "not judged" });
    },
  };
}

/** By a plain key's signature alone, on Solana also by the transaction it is over; asks nobody. */
export function checkSignature(chains: Chains, signed: Signed): Verdict {
  const chain = getChain(chains, signed.chain);
  return chain.family === "solana" ? checkSolanaSignature(chain, signed) : checkKey(chain, signed as EvmSigned);
}

/** A plain key's signature: well formed, and the payer's over exactly this transfer. */
function checkKey(chain: EvmChain, signed: EvmSigned): Verdict {
  const fault = findSignatureFault(signed.proof);
  if (fault) return { ok: false, reason: fault };
  return recoverSigner(hashRow(chain, signed), signed.proof) === signed.payer
    ? { ok: true, smartWallet: false }
    : { ok: false, reason: "the signature is not the account's over this payment" };
}

/** Who judges the signature (a key's is judged here, a wallet's by its code on chain), and then a simulation of all. */
async function judge(deps: Deps, chain: EvmChain, all: readonly EvmSigned[]): Promise<[Signed, Verdict][]> {
  const payers = [...new Set(all.map((one) => one.payer as Hex))];
  const kinds = await readAccountKinds(chain.rpc, payers);
  const kindOf = new Map(payers.map((payer, index) => [payer as string, kinds[index] ?? "key"]));
  const formal = all.map((one): [EvmSigned, Verdict] => [one, judgeForm(chain, one, kindOf.get(one.payer) ?? "key")]);
  const good = formal.flatMap(([one, verdict]) => (verdict.ok ? [{ one, smartWallet: verdict.smartWallet }] : []));
  const members = good.map(({ one, smartWallet }) => toMember(chain, one, smartWallet));
  const asked = [...new Set(good.map(({ one }) => one.payer))];
  const { outcomes, refused } = await simulateScreened(deps, chain, { from: chain.treasury, members, payers: asked });
  const simulated = await Promise.all(
    good.map(async ({ one, smartWallet }, index): Promise<[Signed, Verdict]> => {
      const outcome = outcomes[index];
      if (!outcome) throw new Error("a simulation gave fewer answers than it was asked");
      if (refused.has(one.payer)) return [one, { ok: false, reason: SCREENED_OUT }];
      // Somebody else may have relayed the very same authorization: then the money is here, and that is what we want.
      if (outcome.ok || (await isSighted(deps.db, one))) return [one, { ok: true, smartWallet }];
      return [one, { ok: false, reason: `the transfer would fail: ${outcome.reason}` }];
    }),
  );
  return [...formal.filter(([, verdict]) => !verdict.ok), ...simulated];
}

/**
 * By the form of a signature and what stands at the payer's address. What a wallet's own code says to it is left to the
 * simulation, which asks it exactly as the chain will.
 */
function judgeForm(chain: EvmChain, signed: EvmSigned, payer: AccountKind): Verdict {
  const byKey = checkKey(chain, signed);
  const { deployment } = unwrapSignature(signed.proof);
  if (payer === "key" && !deployment) return byKey;
  if (payer === "key" && deployment && !isAllowedFactory(chain, deployment.target))
    return { ok: false, reason: "the account is a wallet that is not deployed, and its factory is not allowed here" };
  const token = chain.tokens.get(signed.asset);
  // Tokens that know v, r and s only ask the key, also where it has delegated to code (EIP-7702).
  if (token?.kind === "eip3009" && !token.bytesSignatures && !byKey.ok)
    return { ok: false, reason: `${token.symbol} takes no signatures of smart wallets` };
  return size(signed.proof) > 0 ? { ok: true, smartWallet: true } : { ok: false, reason: "the signature is empty" };
}

function toMember(chain: EvmChain, signed: EvmSigned, smartWallet: boolean): Member {
  const bytes = (hex: Hex | null) => (hex === null ? null : Buffer.from(hex.slice(2), "hex"));
  const row = { ...signed, signature: bytes(signed.proof), permit: bytes(signed.permit), smart_wallet: smartWallet };
  const gas = gasOf(chain, row);
  return { calls: listCalls(chain, row), gas, alone: smartWallet };
}

/** Gas of a transfer whose token is no longer in the networks file. */
const UNKNOWN_GAS = 150_000;

/** Gas that making a row's transfer may take. */
export function gasOf(chain: EvmChain, row: { asset: string; smart_wallet: boolean }): number {
  return row.smart_wallet ? chain.network.walletGas : (chain.tokens.get(row.asset)?.transferGas ?? UNKNOWN_GAS);
}
