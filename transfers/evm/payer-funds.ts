import { encodeFunctionData, hexToBigInt } from "viem";
import { tokenAbi } from "../../chains/evm/abi.ts";
import { encodeBalanceOf } from "../../chains/evm/eip3009.ts";
import type { Call, CallOutcome } from "../../chains/evm/multicall.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { type EvmPendingTransfer, listPendingTransfers } from "../../db/queries/pending-transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { decodeUseCheck, encodeUseCheck } from "./authorization-use.ts";

type Wanted = Pick<EvmPendingTransfer, "kind" | "token" | "payer" | "amount" | "authorization_nonce">;

/** Reason for rejecting a payment whose payer does not hold enough. */
export const INSUFFICIENT_FUNDS = "the amount exceeds balance of the account, less what its other payments take";
/** Reason for rejecting a Permit2 payment whose payer has not approved enough. Buyers see it. */
const INSUFFICIENT_ALLOWANCE =
  "the account's allowance covers only its other payments with this token; pay again once they have gone through";

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
  /**
   * Promises the amount if the account's balance, and its allowance for Permit2, cover it and everything that the account has
   * promised. Otherwise returns the reason for rejecting the payment.
   */
  take: (one: Wanted) => string | undefined;
};

const keyOf = ({ token, payer }: { token: string; payer: string }) => `${token} ${payer}`;

/**
 * Plans the calls that read what payers can still pay. The amount of an accepted transfer that is in no block yet is
 * promised. The same call reads the balance and whether the newest block includes the transfer, so that an amount is never
 * counted twice. A payer's authorizations for one payment have the same nonce and count once. The allowance for Permit2 is read
 * where an account pays several payments with it; the simulation of a payment shows whether it covers that one. A signed permit
 * adds nothing: it sets the allowance to the amount of its own payment, and permits that are signed at once have the same nonce.
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
  const approving = listApproving(accounts, [...wanted, ...promised]);
  const uses = accounts.length + approving.length;
  return {
    calls: [
      ...accounts.map(encodeBalanceCall),
      ...approving.map((one) => encodeAllowanceCall(chain, one)),
      ...promised.map((one) => encodeUseCheck(chain, one)),
    ],
    counted: new Set(all.map(({ id }) => id)),
    read: (outcomes) => {
      const amountsOf = (some: readonly Wanted[], from: number) =>
        new Map(some.map((one, index) => [keyOf(one), toAmount(outcomes[from + index])]));
      const open = promised.filter((one, index) => decodeUseCheck(one, outcomes[uses + index]) !== true);
      return makeFunds(amountsOf(accounts, 0), amountsOf(approving, accounts.length), open);
    },
  };
}

/** Returns the accounts that pay more than one of these payments through Permit2. */
function listApproving(accounts: readonly Wanted[], all: readonly Wanted[]): Wanted[] {
  const noncesOf = Map.groupBy(all, keyOf);
  const isShared = (one: Wanted) =>
    noncesOf.get(keyOf(one))?.some((other) => other.authorization_nonce !== one.authorization_nonce);
  return accounts.filter((one) => one.kind === "permit2" && isShared(one));
}

function makeFunds(
  balances: ReadonlyMap<string, bigint>,
  allowances: ReadonlyMap<string, bigint>,
  promised: readonly EvmPendingTransfer[],
): Funds {
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
      if ((balances.get(keyOf(one)) ?? 0n) < one.amount + rest) return INSUFFICIENT_FUNDS;
      const allowed = allowances.get(keyOf(one));
      if (rest > 0n && allowed !== undefined && allowed < one.amount + rest) return INSUFFICIENT_ALLOWANCE;
      of(one).set(one.authorization_nonce, one.amount);
      return undefined;
    },
  };
}

function encodeBalanceCall({ token, payer }: Wanted): Call {
  return { target: token, data: encodeBalanceOf(payer) };
}

function encodeAllowanceCall({ permit2 }: EvmChain, { token, payer }: Wanted): Call {
  return {
    target: token,
    data: encodeFunctionData({ abi: tokenAbi, functionName: "allowance", args: [payer, permit2] }),
  };
}

function toAmount(outcome: CallOutcome | undefined): bigint {
  return outcome?.ok && outcome.data.length === 66 ? hexToBigInt(outcome.data) : 0n;
}
