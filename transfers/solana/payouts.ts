import { chooseUnitPrice } from "../../chains/solana/fees.ts";
import { chooseLane } from "../../chains/solana/lanes.ts";
import { listMarked } from "../../chains/solana/markers.ts";
import { listNoncePlaces, readNonces, readRent } from "../../chains/solana/nonces.ts";
import { getSolanaToken, type SolanaChain, type SolanaToken } from "../../chains/solana/open.ts";
import type { Budget } from "../../chains/solana/payment.ts";
import { buildPayouts, countUnits, type Payout, type PayoutArgs, takeFitting } from "../../chains/solana/payouts.ts";
import { simulate } from "../../chains/solana/simulate.ts";
import { MOST_UNITS } from "../../chains/solana/wallet-extras.ts";
import { keepFree } from "../../db/solana-transactions.ts";
import type { TransferRow } from "../../db/transfers.ts";
import { type AdoptedBook, dropMade } from "../adopt.ts";
import { findTreasuryEpoch } from "../caught-up.ts";
import type { TransferDeps } from "../deps.ts";
import { holdPayout, prepareReceivers, type Ready } from "./receivers.ts";
import { signWith } from "./sign.ts";
import { offerStored, type Signing, storeSignings } from "./store.ts";

/** A durable nonce, and the slot that it was seen in. */
type NonceAt = { address: string; nonce: string; slot: number };

/**
 * Sends the treasury's transfers, as many to a transaction as fit, each transaction signed against a durable nonce that is
 * in no other one: it lands once or never, however late. Each payout makes its marker, so the cluster refuses a second one
 * with the same number. What stands in the chain already, as the history of the treasury or the marker shows, is not sent
 * at all. Those that would fail are held, alone. Gives how many went.
 */
export async function submitPayouts(
  deps: TransferDeps,
  chain: SolanaChain,
  rows: readonly TransferRow[],
  adopted: AdoptedBook,
): Promise<number> {
  if (rows.length === 0) return 0;
  const epoch = await findTreasuryEpoch(deps, chain.chain);
  if (epoch === undefined) return 0;
  // A database that was restored may not know of a payout that was made; the treasury's history and the markers tell.
  const unmade = await holdMarked(deps, chain, await dropMade(deps, rows, adopted));
  if (unmade.length === 0) return 0;
  const ready = await prepareReceivers(deps, chain, unmade);
  const frame = { epoch, markerRent: await readRent(chain) };
  let went = 0;
  const nonces = await listFreeNonces(deps, chain);
  for (const [asset, group] of Map.groupBy(ready, ({ row }) => row.asset)) {
    const to = { ...frame, token: getSolanaToken(chain, asset) };
    // One that has failed in company goes alone.
    for (const one of group.filter(({ row }) => row.alone))
      went += await submitBatch(deps, chain, { ...to, batch: [one], nonces });
    let rest = group.filter(({ row }) => !row.alone);
    while (rest.length > 0 && nonces.length > 0) {
      const batch = takeBatch(chain, { ...to, ready: rest, nonces });
      went += await submitBatch(deps, chain, { ...to, batch, nonces });
      rest = rest.slice(batch.length);
    }
  }
  return went;
}

/**
 * Payouts whose marker is there have been made, by a transaction that the rows do not know: they wait until the watcher has
 * found it in the treasury's history. Gives the others.
 */
async function holdMarked(
  deps: TransferDeps,
  chain: SolanaChain,
  rows: readonly TransferRow[],
): Promise<TransferRow[]> {
  const numbers = rows.map((row) => row.authorization_nonce);
  const marked = await listMarked(chain, numbers);
  for (const row of rows)
    if (marked.has(row.authorization_nonce))
      await holdPayout(deps, row, "the chain has its marker: it was made before, and is searched for in the history");
  return rows.filter((row) => !marked.has(row.authorization_nonce));
}

/** Durable nonces that no transaction uses, with what they say now. */
async function listFreeNonces(deps: TransferDeps, chain: SolanaChain): Promise<NonceAt[]> {
  const places = (await listNoncePlaces(chain, deps.deployment)).map(({ address }) => address);
  const free = await keepFree(deps.db, { chain: chain.chain, accounts: places });
  // What was signed against a nonce that goes again with its slot can never land, and is found dead.
  const { slot, nonces } = await readNonces(chain, free, "confirmed");
  return free.flatMap((address, index) => {
    const nonce = nonces[index];
    return nonce === undefined ? [] : [{ address, nonce, slot }];
  });
}

/** What payouts of one run have in common. */
type Frame = { token: SolanaToken; markerRent: bigint };

/** As many as fit into one transaction. */
function takeBatch(
  chain: SolanaChain,
  { ready, nonces, ...frame }: Frame & { ready: readonly Ready[]; nonces: readonly NonceAt[] },
): readonly Ready[] {
  const at = nonces[0] ?? { address: chain.treasury, nonce: chain.treasury, slot: 0 };
  const budget = { units: Number(MOST_UNITS), unitPrice: 0n };
  const args = describeFrame(chain, { ...frame, lane: chain.lanes[0] ?? "", at, budget });
  return ready.slice(0, Math.max(1, takeFitting(ready.map(toPayout), args)));
}

/** All of a payouts' transaction but the payouts. The treasury alone may use its nonces. */
function describeFrame(
  chain: SolanaChain,
  { token, markerRent, lane, at, budget }: Frame & { lane: string; at: NonceAt; budget: Budget },
): Omit<PayoutArgs, "payouts"> {
  const { token: mint, program, decimals } = token;
  const nonce = { nonceAccount: at.address, nonceAuthority: chain.treasury, nonce: at.nonce };
  return { feePayer: lane, treasury: chain.treasury, mint, program, decimals, markerRent, ...nonce, budget };
}

function toPayout({ row, makeAccount }: Ready): Payout {
  return { destination: row.receiver, amount: row.amount, memo: row.authorization_nonce, makeAccount };
}

type Batch = Frame & { epoch: string; batch: readonly Ready[]; nonces: NonceAt[] };

/** What finds no free nonce waits: the watcher rings when it has seen some transactions land. */
async function submitBatch(deps: TransferDeps, chain: SolanaChain, args: Batch): Promise<number> {
  const { epoch, batch, nonces } = args;
  const [at] = nonces;
  if (!at) return 0;
  const signing = await signBatch(deps, chain, { ...args, at });
  const outcome = await simulate(chain, signing.bytes);
  if (outcome.ok) {
    nonces.shift();
    const stored = await storeSignings(deps, chain, [signing], epoch);
    await offerStored(deps, chain, stored);
    return stored.length * batch.length;
  }
  const [only, ...others] = batch;
  let went = 0;
  // One of several would fail: each is tried alone, and the others do not wait for it.
  if (others.length > 0) for (const one of batch) went += await submitBatch(deps, chain, { ...args, batch: [one] });
  else if (only) await holdPayout(deps, only.row, outcome.reason);
  return went;
}

async function signBatch(
  deps: TransferDeps,
  chain: SolanaChain,
  { batch, at, ...frame }: Frame & { batch: readonly Ready[]; at: NonceAt },
): Promise<Signing> {
  const keys = deps.solanaKeys.get(chain.chain);
  const now = deps.now().getTime();
  const lane = await chooseLane(chain, { key: batch[0]?.row.authorization_nonce ?? "0x00000000", now, isLive: true });
  const relayer = keys?.lanes.get(lane);
  if (!keys || !relayer) throw new Error(`${chain.chain} has no keys here`);
  const payouts = batch.map(toPayout);
  const units = countUnits(payouts, frame.token.program);
  const unitPrice = await chooseUnitPrice(chain, units, now);
  const unsigned = buildPayouts({
    ...describeFrame(chain, { ...frame, lane, at, budget: { units, unitPrice } }),
    payouts,
  });
  const bytes = signWith(unsigned, [relayer, keys.treasury]);
  const dies = { nonceAccount: at.address, nonce: at.nonce, slot: at.slot };
  return { lane, bytes, units, unitPrice, dies, transferIds: batch.map(({ row }) => row.id) };
}
