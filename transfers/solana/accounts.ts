import { setTimeout as delay } from "node:timers/promises";
import { ChainFault } from "../../chains/faults.ts";
import { listNoncePlaces, makeNonceAccount, readRent } from "../../chains/solana/nonces.ts";
import type { SolanaChain } from "../../chains/solana/open.ts";
import { buildTransaction } from "../../chains/solana/payment.ts";
import { readAccounts, readBlockhash } from "../../chains/solana/reads.ts";
import { makeTokenAccount } from "../../chains/solana/token-accounts.ts";
import { parseTransaction, withSignature } from "../../chains/solana/transactions.ts";
import type { TransferDeps } from "../deps.ts";
import { offerStored, type Signing, storeSignings } from "./store.ts";

/** Accounts made by one transaction. */
const TOGETHER = 4;
/** How long a start waits for accounts to be there before it tries anew, milliseconds. */
const PATIENCE_MS = 20_000;

/**
 * Makes the treasury's token accounts and the durable nonce accounts that are missing, at the first relayer's expense.
 * Throws ChainFault `rpc_behind` when they are not there in time: then the start is tried again, and what was sent
 * meanwhile may still land, to no harm.
 */
export async function ensureAccounts(deps: TransferDeps, chain: SolanaChain): Promise<void> {
  const missing = await listMissing(deps, chain);
  if (missing.length === 0) return;
  deps.log.info({ chain: chain.chain, accounts: missing.length }, "making accounts of our own");
  const { blockhash, lastHeight } = await readBlockhash(chain);
  const signings: Signing[] = [];
  for (let from = 0; from < missing.length; from += TOGETHER) {
    const instructions = missing.slice(from, from + TOGETHER).flatMap((one) => one.instructions);
    signings.push(signAsLane(deps, chain, buildTransaction(chain.lanes[0] ?? "", instructions, blockhash), lastHeight));
  }
  await offerStored(deps, chain, await storeSignings(deps, chain, signings, undefined));
  const patience = Date.now() + PATIENCE_MS;
  while ((await listMissing(deps, chain)).length > 0) {
    if (Date.now() > patience) throw new ChainFault("rpc_behind", { detail: "accounts of our own are not there yet" });
    await delay(chain.network.pollMs);
  }
}

async function listMissing(deps: TransferDeps, chain: SolanaChain) {
  const rent = await readRent(chain);
  const payer = chain.lanes[0] ?? "";
  const wanted = [
    ...[...chain.tokens.values()].map((token) => ({
      address: token.treasuryAccount,
      instructions: [makeTokenAccount({ payer, owner: chain.treasury, mint: token.token, program: token.program })],
    })),
    ...(await listNoncePlaces(chain, deps.deployment)).map((place) => ({
      address: place.address,
      instructions: makeNonceAccount(chain, place, rent),
    })),
  ];
  const found = await readAccounts(
    chain,
    wanted.map(({ address }) => address),
  );
  return wanted.filter((_one, index) => found[index] === undefined);
}

function signAsLane(deps: TransferDeps, chain: SolanaChain, unsigned: Uint8Array, lastHeight: number): Signing {
  const lane = chain.lanes[0] ?? "";
  const signer = deps.solanaKeys.get(chain.chain)?.lanes.get(lane);
  const parsed = parseTransaction(unsigned);
  if (!signer || "fault" in parsed) throw new Error(`the first relayer of ${chain.chain} cannot sign`);
  const bytes = withSignature(parsed, lane, signer.sign(parsed.message));
  // No budget is set: so few instructions need none.
  return { lane, bytes, units: 0, unitPrice: 0n, dies: { lastHeight }, transferIds: [] };
}
