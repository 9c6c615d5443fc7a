import { readAgreeFrom } from "../../chains/endpoints.ts";
import { readEachTransaction } from "../../chains/solana/history.ts";
import { readMovements } from "../../chains/solana/movements.ts";
import type { SolanaChain } from "../../chains/solana/open.ts";
import { readWords, type Word } from "../../chains/solana/reads.ts";
import type { TransferDeps } from "../deps.ts";

/** Endpoints that have to say the same. */
const AGREED_BY = 2;
/** How long a second endpoint that lags is waited for, milliseconds; for large movements as long as it takes. */
const PATIENCE_MS = 30_000;

/** A movement that is to be booked: its mint, and where it stands. `isOurs`: in a transaction that we have signed. */
type Movement = { hash: string; slot: number; token: string; amount: bigint; receiver: string; isOurs: boolean };

/** Since when second endpoints of a cluster have lagged. */
const behindSince = new WeakMap<SolanaChain["rpc"], number>();

/**
 * Keeps those of some movements that a second endpoint shows as well, in the same slot and as deep as the network's policy
 * calls confirmed. One that does not answer, or lags for long, is passed over, but not for large movements (`agreeFrom` in
 * the networks file). One that shows something else stops a movement from being booked. A large movement of a transaction
 * that is not ours is read from two endpoints: its amount too is an endpoint's word.
 */
export async function keepAgreed<M>(
  deps: Pick<TransferDeps, "metrics" | "log" | "now">,
  chain: SolanaChain,
  all: readonly M[],
  describe: (one: M) => Movement,
): Promise<M[]> {
  if (all.length === 0) return [];
  const movements = all.map((one) => ({ one, ...describe(one) }));
  const words = await readWords(
    chain,
    movements.map(({ hash }) => hash),
  );
  const kept: M[] = [];
  let isBehind = false;
  for (const movement of movements) {
    const said = words.get(movement.hash) ?? [];
    const shown = said.filter(({ status }) => status !== undefined && isSame(chain, status, movement));
    const denied = said.filter((word) => !shown.includes(word) && isDenial(word, movement));
    for (const { by } of denied) deps.metrics.endpointDisagreements.inc({ chain: chain.chain, endpoint: by });
    const isLarge = movement.amount >= (limitOf(chain, movement.token) ?? movement.amount + 1n);
    const isAlone = shown.length < AGREED_BY && denied.length === 0;
    if (isAlone && said.length >= AGREED_BY) isBehind = true;
    const passes = said.length < AGREED_BY || isPatienceOver(deps, chain);
    if (denied.length > 0)
      deps.log.error(
        { chain: chain.chain, tx: movement.hash },
        "endpoints disagree about a transaction; it is not booked",
      );
    else if (
      isLarge
        ? shown.length >= AGREED_BY && (await isReadTwice(chain, movement))
        : !isAlone || (passes && shown.length > 0)
    )
      kept.push(movement.one);
    else if (isLarge) {
      deps.metrics.agreementWaits.inc({ chain: chain.chain });
      deps.log.warn({ chain: chain.chain, tx: movement.hash }, "a large movement waits for a second endpoint");
    }
  }
  if (!isBehind) behindSince.delete(chain.rpc);
  return kept;
}

function isSame(chain: SolanaChain, status: NonNullable<Word["status"]>, { slot }: Movement): boolean {
  const { finality } = chain.network;
  return !status.error && status.slot === slot && (status.depth === "finalized" || status.depth === finality);
}

/** An endpoint has come to the slot, and shows nothing, or something else, there. One that is less deep says nothing. */
function isDenial({ slot, status }: Word, movement: Movement): boolean {
  if (!status) return slot >= movement.slot;
  return status.error !== undefined || status.slot !== movement.slot;
}

function isPatienceOver(deps: Pick<TransferDeps, "now">, { rpc }: SolanaChain): boolean {
  const now = deps.now().getTime();
  const since = behindSince.get(rpc) ?? now;
  behindSince.set(rpc, since);
  return now - since >= PATIENCE_MS;
}

function limitOf(chain: SolanaChain, mint: string): bigint | undefined {
  const token = [...chain.tokens.values()].find((one) => one.token === mint);
  return token && readAgreeFrom(chain.network, token);
}

/** What we have signed says itself what it moves. */
async function isReadTwice(chain: SolanaChain, { hash, isOurs, token, receiver, amount }: Movement): Promise<boolean> {
  if (isOurs) return true;
  const account = [...chain.tokens.values()].find((one) => one.token === token)?.treasuryAccount ?? "";
  const treasury = { owner: chain.treasury, accounts: new Map([[account, token]]) };
  const shown = (await readEachTransaction(chain, hash)).filter((transaction) =>
    readMovements(transaction, treasury).some((one) => one.receiver === receiver && one.amount === amount),
  );
  return shown.length >= AGREED_BY;
}
