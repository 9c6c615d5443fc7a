import { canonicalAddress } from "../chains/canonical-ids.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { coldKey, deriveNonce, refundKey, returnKey, settlementKey } from "../chains/natural-key.ts";
import type { Chain } from "../chains/open-chains.ts";
import type { TokenMovement } from "../chains/token-movement.ts";
import {
  type AuthorizedPayout,
  countRecords,
  type Deposit,
  findAuthorized,
  insertPayout,
  listClaimedPayments,
  listDepositPlaces,
} from "./records.ts";
import { isRetired, recordRetirement } from "./retired-treasuries.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { inStoreTransaction, type Store } from "./store.ts";

/** Numbers in a row that no payout has, after which no higher number is looked for. */
const SETTLEMENT_GAP = 1_000;
const REFUND_GAP = 20;

type Deps = Pick<SignerDeps, "store" | "chains" | "deployment" | "log" | "now">;
type Outflow = { chain: string; asset: string; movement: TokenMovement };

/** What the operator knows about the treasuries. */
type RebuildOptions = {
  /** The first block to read, by CAIP-2 id; 0 by default. It must be before the first transfer into the treasury. */
  from: ReadonlyMap<string, number>;
  /** Transfers out of the treasury that belong to no payout, as `txHash/logIndex`. */
  accepted: ReadonlySet<string>;
  /** Most that may stay in a treasury, by asset, minor units; 0 by default. Lost signatures can still take it. */
  left: ReadonlyMap<string, bigint>;
};

/** The payouts that were recorded, the transfers out of the treasury that belong to no payout, and what is still in it. */
type Rebuilt = {
  recorded: number;
  unattributed: { chain: string; txHash: string; logIndex: number; amount: bigint }[];
  held: { asset: string; amount: bigint }[];
};

/**
 * Records the payouts that the chains show, for a store that was lost, and retires the treasuries: they sign nothing again.
 * The lost store has signed payouts that are unknown now. They move money of its treasuries and no other, so nothing is recorded
 * until the treasuries are empty at the end of the history that was read. From then on no unknown signature can move anything.
 * The deposits must have been claimed before: they name the merchants and payments whose payouts are looked for. Records nothing
 * while one transfer out of the treasury belongs to no payout, unless the operator accepts it. Throws an Error if the store was
 * not lost or has no deposits, if the history lacks one of them or differs from the balances, and if a deposit was verified
 * while it was read.
 */
export async function rebuildPayouts(deps: Deps, { from, accepted, left }: RebuildOptions): Promise<Rebuilt> {
  const { store } = deps;
  const chains = [...deps.chains.values()];
  if (countRecords(store).payouts > 0 && !chains.every((chain) => isRetired(store, chain)))
    throw new Error("the store has payouts: rebuild an empty one");
  for (const chain of chains) recordRetirement(store, chain, { state: "begun", at: deps.now() });
  if (countRecords(store).deposits === 0)
    throw new Error(
      "the store has no deposits: start the signer and run `admin payouts claim-deposits`, then repeat this",
    );
  const outflows: Outflow[] = [];
  const returns = new Map<string, string>();
  const balances = new Map<string, bigint>();
  const seen = new Set<string>();
  const { deposits } = countRecords(store);
  for (const chain of chains) {
    deps.log.info({ chain: chain.chain }, "reading the treasury's history");
    for await (const movements of getChainDriver(chain.chain).readTreasuryHistory(chain, from.get(chain.chain) ?? 0))
      for (const movement of movements) {
        const asset = findAsset(chain, movement);
        // A transfer from the treasury to itself moves nothing.
        if (asset === undefined || movement.payer === movement.receiver) continue;
        const isOut = movement.payer === chain.treasury;
        seen.add(placeOf({ chain: chain.chain, ...movement }));
        balances.set(asset, (balances.get(asset) ?? 0n) + (isOut ? -movement.amount : movement.amount));
        if (isOut) outflows.push({ chain: chain.chain, asset, movement });
        else returns.set(deriveNonce(deps.deployment, returnKey({ chain: chain.chain, ...movement })), movement.txHash);
      }
  }
  const missing = listDepositPlaces(store).find((place) => !seen.has(placeOf(place)));
  if (missing)
    throw new Error(
      `the history lacks the deposit ${placeOf(missing)}: it begins too late, or the endpoint leaves out movements`,
    );
  await compareBalances(chains, balances, left);
  const nonces = new Set(outflows.flatMap(({ movement }) => movement.authorizationNonce ?? []));
  const known = attribute(deps, nonces);
  for (const nonce of returns.keys())
    if (nonces.has(nonce)) known.set(nonce, { kind: "return", merchantId: null, paymentId: null });

  const placed = outflows.map((one) => ({ ...one, of: known.get(one.movement.authorizationNonce ?? "") }));
  const isAccepted = ({ movement }: Outflow) => accepted.has(`${movement.txHash}/${movement.logIndex}`);
  // A withdrawal that two operators have approved, to empty the treasury.
  const isRecorded = ({ asset, movement: { authorizationNonce: nonce } }: Outflow) =>
    nonce !== null && findAuthorized(store, { nonce, asset }) > 0n;
  const unattributed = placed.filter((one) => !one.of && !isRecorded(one) && !isAccepted(one));
  // A negative balance means that the history begins too late.
  const isLeft = (asset: string, amount: bigint) => amount >= 0n && amount <= (left.get(asset) ?? 0n);
  const held = [...balances].flatMap(([asset, amount]) => (isLeft(asset, amount) ? [] : { asset, amount }));
  const isComplete = unattributed.length === 0 && held.length === 0;
  const inOrder = placed.toSorted((a, b) => a.movement.blockNumber - b.movement.blockNumber);
  if (isComplete)
    inStoreTransaction(store, () => {
      // A deposit that was verified meanwhile may be younger than the history, and an old signature may have taken its money.
      if (countRecords(store).deposits !== deposits)
        throw new Error("deposits were verified during the rebuild: stop the signer, and repeat this");
      for (const one of inOrder) record(store, one);
      for (const chain of chains) recordRetirement(store, chain, { state: "ended", at: deps.now() });
    });
  return {
    recorded: isComplete ? placed.length : 0,
    unattributed: unattributed.map(({ chain, movement }) => {
      const { txHash, logIndex, amount } = movement;
      return { chain, txHash, logIndex, amount };
    }),
    held,
  };
}

const placeOf = ({ chain, txHash, logIndex }: Pick<Deposit, "chain" | "txHash" | "logIndex">) =>
  `${chain} ${txHash}/${logIndex}`;

/**
 * Compares the sums of the history with the balances on chain. An endpoint that leaves out movements of old blocks would
 * otherwise show an empty treasury. Throws an Error for a difference beyond what may stay in the treasury.
 */
async function compareBalances(
  chains: readonly Chain[],
  sums: ReadonlyMap<string, bigint>,
  left: RebuildOptions["left"],
): Promise<void> {
  for (const chain of chains)
    for (const asset of chain.tokens.keys()) {
      const of = { asset, nonce: undefined };
      const { balance } = await getChainDriver(chain.chain).readFinalBalance(chain, of);
      const difference = balance - (sums.get(asset) ?? 0n);
      if (difference > (left.get(asset) ?? 0n) || -difference > (left.get(asset) ?? 0n))
        throw new Error(
          `the treasury has ${balance} of ${asset}, and its history sums to ${sums.get(asset) ?? 0n}: repeat this, with an earlier block or another endpoint`,
        );
    }
}

function findAsset(chain: Chain, { token }: TokenMovement): string | undefined {
  return [...chain.tokens.values()].find((one) => one.token === token)?.asset;
}

/** What a nonce belongs to. */
type Purpose = Pick<AuthorizedPayout, "kind" | "merchantId" | "paymentId">;

/** Returns what each of these nonces belongs to: the settlements and refunds of every merchant and payment with a deposit. */
function attribute({ store, chains, deployment }: Deps, nonces: ReadonlySet<string>): Map<string, Purpose> {
  const found = new Map<string, Purpose>();
  const search = (gap: number, keyOf: (number: number) => string[], purpose: Purpose) => {
    for (let number = 1, missed = 0; missed < gap; number += 1) {
      const nonce = deriveNonce(deployment, keyOf(number));
      missed = nonces.has(nonce) ? 0 : missed + 1;
      if (nonces.has(nonce)) found.set(nonce, purpose);
    }
  };
  const assets = [...chains.values()].flatMap(({ tokens }) => [...tokens.keys()]);
  const payments = listClaimedPayments(store);
  for (const asset of assets)
    search(SETTLEMENT_GAP, (number) => coldKey({ asset, number }), { kind: "cold", merchantId: null, paymentId: null });
  for (const merchantId of new Set(payments.map((one) => one.merchantId)))
    for (const asset of assets)
      search(SETTLEMENT_GAP, (number) => settlementKey({ merchantId, asset, number }), {
        kind: "settlement",
        merchantId,
        paymentId: null,
      });
  for (const { merchantId, paymentId } of payments)
    search(REFUND_GAP, (number) => refundKey({ merchantId, paymentId, number }), {
      kind: "refund",
      merchantId,
      paymentId,
    });
  return found;
}

/**
 * Records a payout, and the receiver of a settlement as the merchant's destination. Windows of limits do not count it. Keeps a
 * payout that the store has: operators may have withdrawn from the retired treasury.
 */
function record(store: Store, { chain, asset, movement, of }: Outflow & { of: Purpose | undefined }): void {
  const { amount, payer: treasury } = movement;
  const receiver = canonicalAddress(chain, movement.receiver);
  const purpose = of ?? { kind: "accepted", merchantId: null, paymentId: null };
  const nonce = movement.authorizationNonce ?? `${movement.txHash}/${movement.logIndex}`;
  if (findAuthorized(store, { nonce, asset }) > 0n) return;
  const payout = { nonce, treasury, asset, amount, counted: amount, receiver, ...purpose };
  insertPayout(store, payout, new Date(0), { isPast: true });
  if (purpose.kind === "settlement" && purpose.merchantId !== null)
    store
      .prepare(
        "insert into destination (merchant_id, asset, receiver, claimed_at, applies_at) values (?, ?, ?, 0, null)",
      )
      .run(purpose.merchantId, asset, receiver);
}
