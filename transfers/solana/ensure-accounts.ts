import { setTimeout as delay } from "node:timers/promises";
import { ChainError } from "../../chains/errors.ts";
import { buildTransaction, computeBudgetInstructions } from "../../chains/solana/build-payment.ts";
import { keepCreated, readAccounts, readBlockhash } from "../../chains/solana/cluster-state.ts";
import { createNonceAccountInstructions, listNonceAddresses, readRent } from "../../chains/solana/nonce-accounts.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { chooseUnitPrice } from "../../chains/solana/priority-fees.ts";
import { createTokenAccountInstruction } from "../../chains/solana/token-accounts.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { broadcastStored } from "./broadcast-transactions.ts";
import { signWith } from "./sign-own-transaction.ts";
import { type Signing, storeSignings } from "./store-transactions.ts";

/** Accounts that one transaction creates at most. */
const ACCOUNTS_PER_TRANSACTION = 4;
/** More than it takes to create a token account or a nonce account, compute units. */
const UNITS_PER_ACCOUNT = 60_000;
/** How long a start waits until the accounts exist before it fails and is retried, milliseconds. */
const WAIT_MS = 20_000;

/**
 * Creates the missing token accounts of the treasury and durable nonce accounts, in a process that holds the key of the first
 * relayer, which pays for them. Throws
 * ChainError `rpc_behind` when they do not exist in time. The start is retried then, and it is harmless when the transactions
 * of this try are included later.
 */
export async function ensureAccounts(deps: TransferDeps, chain: SolanaChain): Promise<void> {
  const relayer = deps.solanaKeys.get(chain.chain)?.lanes.get(chain.lanes[0] ?? "");
  // A process without the relayers' keys sends nothing, and leaves it to the others.
  if (!relayer) return;
  const missing = await listMissing(deps, chain);
  if (missing.length === 0) return;
  deps.log.info({ chain: chain.chain, accounts: missing.length }, "creating missing token and nonce accounts");
  const { blockhash, lastValidHeight } = await readBlockhash(chain);
  const signings: Signing[] = [];
  for (let from = 0; from < missing.length; from += ACCOUNTS_PER_TRANSACTION) {
    const accounts = missing.slice(from, from + ACCOUNTS_PER_TRANSACTION);
    const units = accounts.length * UNITS_PER_ACCOUNT;
    const budget = { units, unitPrice: await chooseUnitPrice(chain, units, deps.now().getTime()) };
    const instructions = [...computeBudgetInstructions(budget), ...accounts.flatMap((one) => one.instructions)];
    const bytes = await signWith(buildTransaction(relayer.address, instructions, blockhash), relayer);
    signings.push({ lane: relayer.address, bytes, ...budget, expires: { lastValidHeight }, transfers: [] });
  }
  await broadcastStored(deps, chain, await storeSignings(deps, chain, signings, undefined));
  const deadline = Date.now() + WAIT_MS;
  while ((await listMissing(deps, chain)).length > 0) {
    if (Date.now() > deadline)
      throw new ChainError("rpc_behind", { detail: "token or nonce accounts do not exist yet" });
    await delay(chain.network.pollMs);
  }
}

async function listMissing(deps: TransferDeps, chain: SolanaChain) {
  const rent = await readRent(chain);
  const payer = chain.lanes[0] ?? "";
  const wanted = [
    ...[...chain.tokens.values()].map((token) => ({
      address: token.treasuryAccount,
      instructions: [
        createTokenAccountInstruction({ payer, owner: chain.treasury, mint: token.token, program: token.program }),
      ],
    })),
    ...(await listNonceAddresses(chain, deps.deployment)).map((place) => ({
      address: place.address,
      instructions: createNonceAccountInstructions(chain, place, rent),
    })),
  ];
  const found = await readAccounts(
    chain,
    wanted.map(({ address }) => address),
  );
  return wanted.filter((_one, index) => keepCreated(found[index]) === undefined);
}
