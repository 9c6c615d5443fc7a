import { canonicalAddress } from "../chains/canonical-ids.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { coldKey, deriveNonce, refundKey, returnKey, settlementKey } from "../chains/natural-key.ts";
import type { Chain } from "../chains/open-chains.ts";
import type { TokenMovement } from "../chains/token-movement.ts";
import { insertColdTransfer } from "./cold-transfers.ts";
import { type AuthorizedPayout, countRecords, insertPayout, listClaimedPayments } from "./records.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { recordMadePayout } from "./solana/made-payouts.ts";
import { inStoreTransaction, type Store } from "./store.ts";

/** Numbers in a row that no payout has, after which no higher number is looked for. */
const SETTLEMENT_GAP = 1_000;
const REFUND_GAP = 20;

type Deps = Pick<SignerDeps, "store" | "chains" | "deployment" | "log">;
type Outflow = { chain: string; asset: string; movement: TokenMovement };

/** The payouts that were recorded, and the transfers out of the treasury that belong to no payout. */
type Rebuilt = {
  recorded: number;
  unattributed: { chain: string; txHash: string; logIndex: number; amount: bigint }[];
};

/**
 * Records the payouts that the chains show, for a store that was lost. The deposits must have been claimed before: they name
 * the merchants and payments whose payouts are looked for. Records nothing while one transfer out of the treasury belongs to no
 * payout, unless the operator accepts it. Throws an Error if the store has payouts already, or no deposits.
 * @param from the first block to read, by CAIP-2 id; 0 by default
 * @param accepted transfers that the operator knows, as `txHash/logIndex`
 */
export async function rebuildPayouts(
  deps: Deps,
  { from, accepted }: { from: ReadonlyMap<string, number>; accepted: ReadonlySet<string> },
): Promise<Rebuilt> {
  if (countRecords(deps.store).payouts > 0) throw new Error("the store has payouts: rebuild an empty one");
  const outflows: Outflow[] = [];
  const returns = new Map<string, string>();
  for (const chain of deps.chains.values()) {
    deps.log.info({ chain: chain.chain }, "reading the treasury's history");
    for await (const movements of getChainDriver(chain.chain).readTreasuryHistory(chain, from.get(chain.chain) ?? 0))
      for (const movement of movements) {
        if (movement.payer === chain.treasury) outflows.push(...toOutflow(chain, movement));
        else returns.set(deriveNonce(deps.deployment, returnKey({ chain: chain.chain, ...movement })), movement.txHash);
      }
  }
  if (outflows.length > 0 && countRecords(deps.store).deposits === 0)
    throw new Error("the store has no deposits: start the signer and run `admin payouts claim-deposits` first");
  const nonces = new Set(outflows.flatMap(({ movement }) => movement.authorizationNonce ?? []));
  const known = attribute(deps, nonces);
  for (const nonce of returns.keys())
    if (nonces.has(nonce)) known.set(nonce, { kind: "return", merchantId: null, paymentId: null, number: 1 });

  const placed = outflows.map((one) => ({ ...one, of: known.get(one.movement.authorizationNonce ?? "") }));
  const isAccepted = ({ movement }: Outflow) => accepted.has(`${movement.txHash}/${movement.logIndex}`);
  const unattributed = placed.filter((one) => !one.of && !isAccepted(one));
  const inOrder = placed.toSorted((a, b) => a.movement.blockNumber - b.movement.blockNumber);
  if (unattributed.length === 0)
    inStoreTransaction(deps.store, () => {
      for (const one of inOrder) {
        record(deps.store, one);
        recordMadePayout(deps, one.chain, one.movement.authorizationNonce);
      }
    });
  return {
    recorded: unattributed.length === 0 ? placed.length : 0,
    unattributed: unattributed.map(({ chain, movement }) => {
      const { txHash, logIndex, amount } = movement;
      return { chain, txHash, logIndex, amount };
    }),
  };
}

function toOutflow(chain: Chain, movement: TokenMovement): Outflow[] {
  const token = [...chain.tokens.values()].find((one) => one.token === movement.token);
  // A transfer from the treasury to itself moves nothing.
  if (!token || movement.receiver === chain.treasury) return [];
  return [{ chain: chain.chain, asset: token.asset, movement }];
}

/** What a nonce belongs to. `number` counts the payouts with the same purpose; a return has the number 1. */
type Purpose = Pick<AuthorizedPayout, "kind" | "merchantId" | "paymentId"> & { number: number };

/** Returns what each of these nonces belongs to: the settlements and refunds of every merchant and payment with a deposit. */
function attribute({ store, chains, deployment }: Deps, nonces: ReadonlySet<string>): Map<string, Purpose> {
  const found = new Map<string, Purpose>();
  const search = (gap: number, keyOf: (number: number) => string[], purpose: Omit<Purpose, "number">) => {
    for (let number = 1, missed = 0; missed < gap; number += 1) {
      const nonce = deriveNonce(deployment, keyOf(number));
      missed = nonces.has(nonce) ? 0 : missed + 1;
      if (nonces.has(nonce)) found.set(nonce, { ...purpose, number });
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

/** Records a payout, and the receiver of a settlement as the merchant's destination. Windows of limits do not count it. */
function record(store: Store, { chain, asset, movement, of }: Outflow & { of: Purpose | undefined }): void {
  const { amount } = movement;
  const receiver = canonicalAddress(chain, movement.receiver);
  const treasury = movement.payer;
  if (of?.kind === "cold") {
    insertColdTransfer(store, { treasury, asset, number: of.number, amount, receiver }, new Date(0));
    return;
  }
  const { number: _, ...purpose } = of ?? { kind: "accepted", merchantId: null, paymentId: null, number: 0 };
  const nonce = movement.authorizationNonce ?? `${movement.txHash}/${movement.logIndex}`;
  insertPayout(store, { nonce, treasury, asset, amount, counted: amount, receiver, ...purpose }, new Date(0));
  if (purpose.kind === "settlement" && purpose.merchantId !== null)
    store
      .prepare(
        "insert into destination (merchant_id, asset, receiver, claimed_at, applies_at) values (?, ?, ?, 0, null)",
      )
      .run(purpose.merchantId, asset, receiver);
}
