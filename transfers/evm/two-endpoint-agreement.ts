import { isTransientChainError } from "../../chains/errors.ts";
import { readFinalHeight } from "../../chains/evm/blocks.ts";
import { readReceipt } from "../../chains/evm/evm-broadcast.ts";
import type { EndpointRpc } from "../../chains/evm/evm-rpc.ts";
import type { EvmChain, EvmToken } from "../../chains/evm/open-evm-chain.ts";
import { readTransferLogs } from "../../chains/evm/transfer-logs.ts";
import type { ConfirmedTransfer } from "../../db/queries/confirmable-transfers.ts";
import type { UnmatchedObservation } from "../../db/queries/unmatched-movements.ts";
import { readHex } from "../../runtime/hex.ts";
import { isLargeAmount } from "../large-amount.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** Endpoints that must agree on a large movement. */
const REQUIRED_ENDPOINTS = 2;

/** What each endpoint must show of a movement on its own. */
type Shown = Pick<UnmatchedObservation, "block_number" | "block_id" | "tx_hash" | "log_index" | "amount"> & {
  token: string;
  receiver: string;
};

/** Selects the movements that can be booked now: small ones, and large ones on which two endpoints agree. */
export type Agreement = {
  keepTransfers(transfers: readonly ConfirmedTransfer[]): Promise<ConfirmedTransfer[]>;
  keepMovements(movements: readonly UnmatchedObservation[]): Promise<UnmatchedObservation[]>;
};

/**
 * Opens the comparison of endpoints for one booking. The networks file says which amounts are large, by asset
 * (`agreementThreshold`). A large movement waits without a time limit until two endpoints show its log in the receipt, in the same
 * block, and each of them reports that block as final.
 */
export function openAgreement(deps: Pick<TransferDeps, "metrics" | "log">, chain: EvmChain): Agreement {
  const finals = new Map<EndpointRpc, Promise<number>>();
  const tokenOf = new Map<string, EvmToken>([...chain.tokens.values()].map((token) => [token.token, token]));
  const isShown = async (endpoint: EndpointRpc, movement: Shown): Promise<boolean> => {
    const final = finals.get(endpoint) ?? readFinalHeight(chain, endpoint.rpc);
    finals.set(endpoint, final);
    if ((await final) < movement.block_number) return false;
    const receipt = await readReceipt(endpoint.rpc, readHex(movement.tx_hash));
    if (!receipt || receipt.reverted || receipt.blockHash !== movement.block_id) return false;
    return readTransferLogs(receipt.logs, chain).some((log) => isSame(log, movement));
  };
  const isAgreed = async (movement: Shown): Promise<boolean> => {
    if (!isLargeAmount(chain, tokenOf.get(movement.token), movement.amount)) return true;
    const answers = chain.endpoints.map((endpoint) =>
      isShown(endpoint, movement).catch((error: unknown) => {
        if (isTransientChainError(error)) return false;
        throw error;
      }),
    );
    const agreed = (await Promise.all(answers)).filter(Boolean).length >= REQUIRED_ENDPOINTS;
    if (!agreed) {
      deps.metrics.agreementWaits.inc({ chain: chain.chain });
      const { tx_hash: tx, amount } = movement;
      deps.log.warn({ chain: chain.chain, tx, amount: String(amount) }, "large movement waits for a second endpoint");
    }
    return agreed;
  };
  const keep = async <M>(all: readonly M[], show: (one: M) => Shown): Promise<M[]> => {
    const kept: M[] = [];
    for (const one of all) if (await isAgreed(show(one))) kept.push(one);
    return kept;
  };
  return {
    keepTransfers: (transfers) =>
      keep(transfers, (one) => {
        const token = chain.tokens.get(one.asset)?.token ?? one.asset;
        // The endpoints show what moved, which can be more than an adopted payout owed.
        return { ...one, token, amount: one.observed_amount };
      }),
    keepMovements: (movements) => keep(movements, (one) => one),
  };
}

function isSame(log: ReturnType<typeof readTransferLogs>[number], movement: Shown): boolean {
  return (
    log.logIndex === movement.log_index &&
    log.token === movement.token &&
    log.receiver === movement.receiver &&
    log.amount === movement.amount
  );
}
