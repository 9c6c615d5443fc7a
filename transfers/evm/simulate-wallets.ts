import type { Hex } from "viem";
import { ChainError } from "../../chains/errors.ts";
import { putsCodeAt } from "../../chains/evm/account-code.ts";
import { toFeeMembers } from "../../chains/evm/fee-members.ts";
import { type BatchMember, type Call, type CallOutcome, requireResponsive } from "../../chains/evm/multicall.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { simulateTransaction } from "../../chains/evm/simulate-transaction.ts";
import { findBaseFee } from "../../db/queries/chain-cursors.ts";
import type { EvmSigned, VerifyDeps } from "../verification.ts";
import { walletLaneOf } from "./lane-signers.ts";
import { buildPayload } from "./multicall-batch.ts";
import { priceTransaction } from "./price-transaction.ts";

/** A contract wallet's transfer. `deployment` is the call that deploys the wallet before the transfer. */
type WalletTransfer = { one: EvmSigned; deployment: Call | undefined; member: BatchMember };

const NOT_DEPLOYED: CallOutcome = { ok: false, reason: "the factory's call does not deploy the account" };

/**
 * Simulates contract wallets' transfers as the transactions that their lane would send now. A transfer that passes is refused all the
 * same if its factory's call does not deploy the wallet: a lane would make any call that the buyer chooses. That takes a second call,
 * which a stranger's garbage does not cause.
 */
export async function simulateWallets<T extends WalletTransfer>(
  deps: VerifyDeps,
  chain: EvmChain,
  wallets: readonly T[],
): Promise<[T, CallOutcome][]> {
  if (wallets.length === 0) return [];
  const baseFee = (await findBaseFee(deps.db, chain.chain)) ?? 0n;
  const { feeModel, fees: policy } = chain.network;
  const { priorityFeePerGas: tip } = policy;
  // Above the ceiling, the transfer is sent later at a price that is not known now.
  const unlimited = { fees: { maxFeePerGas: baseFee * 2n + tip, maxPriorityFeePerGas: tip }, extraGas: 0n };
  const from = walletLaneOf(chain);
  return Promise.all(
    wallets.map(async (each): Promise<[T, CallOutcome]> => {
      const payload = buildPayload(chain.multicall, [each.member]);
      const { fees, extraGas } = (await priceTransaction(chain, payload, baseFee)) ?? unlimited;
      const gas = payload.gas + extraGas;
      const transaction = { from, ...payload, gas, ...toFeeMembers(feeModel, fees) };
      const outcome = await simulateTransaction(chain.rpc, chain.multicall, transaction);
      const { one, deployment } = each;
      const isFake = outcome.ok && deployment && !(await deploys(chain, one.payer, { deployment, gas }));
      return [each, isFake ? NOT_DEPLOYED : outcome];
    }),
  );
}

/** Returns true if a factory's call deploys the payer's wallet within the gas of the payer's transaction. */
async function deploys(
  chain: EvmChain,
  payer: Hex,
  { deployment, gas }: { deployment: Call; gas: bigint },
): Promise<boolean> {
  return putsCodeAt(chain.rpc, payer, { ...deployment, gas }).catch(async (error: unknown) => {
    if (!(error instanceof ChainError && error.code === "rpc_answer")) throw error;
    await requireResponsive(chain.rpc, chain.multicall);
    return false;
  });
}
