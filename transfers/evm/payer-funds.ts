import { type Hex, hexToBigInt } from "viem";
import { encodeBalanceOf } from "../../chains/evm/eip3009.ts";
import type { Call, CallOutcome } from "../../chains/evm/multicall.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { type EvmPendingTransfer, listPendingTransfers } from "../../db/queries/pending-transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { decodeUseCheck, encodeUseCheck } from "./authorization-use.ts";

type Wanted = { token: Hex; payer: Hex; amount: bigint; authorization_nonce: string };

/** Reason for rejecting a payment whose payer does not hold enough. */
export const INSUFFICIENT_FUNDS = "the amount exceeds balance of the account, less what its other payments take";

/** The calls that read what accounts hold and have promised. `read` turns the outcomes of `calls` into the result. */
export type FundsPlan = {
  calls: readonly Call[];
  /** Ids of the promised transfers that are counted. */
  counted: ReadonlySet<string>;
  read: (outcomes: readonly (CallOutcome | undefined)[]) => Funds;
};

export type Funds = {
  /** Returns true when the account holds the amount, regardless of what it has promised. */
  holds: (one: Wanted) => boolean;
  /** Returns true when the account's balance covers the amount and everything it has promised. Promises the amount then. */
  take: (one: Wanted) => boolean;
};

const keyOf = ({ token, payer }: { token: string; payer: string }) => `${token} ${payer}`;

/**
 * Plans the calls that read what payers can still pay. The amount of an accepted transfer that is in no block yet is
 * promised. The same call reads the balance and whether the newest block includes the transfer, so that an amount is never
 * counted twice. A payer's authorizations for one payment have the same nonce and count once.
 */
export async function planFundsCheck(
  deps: Pick<TransferDeps, "db">,
  chain: EvmChain,
  wanted: readonly Wanted[],
): Promise<FundsPlan> {
  const accounts = [...new Map(wanted.map((one) => [keyOf(one), one])).values()];
  const payers = [...new Set(wanted.map(({ payer }) => payer))];
  const all = await listPendingTransfers(deps.db, { chain: chain.chain, payers });
  const keys = new Set(accounts.map(keyOf));
  const ofEvm = all.filter((one) => one.kind !== "spl");
  const promised = ofEvm.filter((one) => one.kind !== "push" && keys.has(keyOf(one)));
  return {
    calls: [...accounts.map(encodeBalanceCall), ...promised.map((one) => encodeUseCheck(chain, one))],
    counted: new Set(all.map(({ id }) => id)),
    read: (outcomes) => {
      const balances = new Map(accounts.map((one, index) => [keyOf(one), toBalance(outcomes[index])]));
      const open = promised.filter((one, index) => decodeUseCheck(one, outcomes[accounts.length + index]) !== true);
      return makeFunds(balances, open);
    },
  };
}

function makeFunds(balances: ReadonlyMap<string, bigint>, promised: readonly EvmPendingTransfer[]): Funds {
  const taken = new Map<string, Map<string, bigint>>();
  const of = (one: Wanted | EvmPendingTransfer) => {
    const key = keyOf(one);
    const made = taken.get(key) ?? new Map<string, bigint>();
    taken.set(key, made);
    return made;
  };
  for (const one of promised) of(one).set(one.authorization_nonce, one.amount);
  const holds = (one: Wanted) => (balances.get(keyOf(one)) ?? 0n) >= one.amount;
  return {
    holds,
    take: (one) => {
      const others = [...of(one)].filter(([nonce]) => nonce !== one.authorization_nonce);
      const rest = others.reduce((sum, [, amount]) => sum + amount, 0n);
      if ((balances.get(keyOf(one)) ?? 0n) < one.amount + rest) return false;
      of(one).set(one.authorization_nonce, one.amount);
      return true;
    },
  };
}

function encodeBalanceCall({ token, payer }: Wanted): Call {
  return { target: token, data: encodeBalanceOf(payer) };
}

function toBalance(outcome: CallOutcome | undefined): bigint {
  return outcome?.ok && outcome.data.length === 66 ? hexToBigInt(outcome.data) : 0n;
}
