import { readAgreeFrom } from "../chains/endpoints.ts";
import { pairLogs } from "../chains/evm/movements.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import type { NamedRpc } from "../chains/evm/rpc.ts";
import { readReceipt } from "../chains/evm/send.ts";
import { isTransientChainError } from "../chains/faults.ts";
import type { StraySighting } from "../db/sightings.ts";
import type { ConfirmedTransfer } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";
import { readFinal } from "./witness.ts";

/** Endpoints that have to say the same of a large movement. */
const AGREED_BY = 2;

/** What each endpoint has to show of a movement by itself. */
type Shown = Pick<StraySighting, "block_number" | "block_hash" | "tx_hash" | "log_index" | "amount"> & {
  token: string;
  receiver: string;
};

/** Those of some movements that may be booked now: small ones, and large ones on which two endpoints agree. */
export type Agreement = {
  keepTransfers(transfers: readonly ConfirmedTransfer[]): Promise<ConfirmedTransfer[]>;
  keepMovements(movements: readonly StraySighting[]): Promise<StraySighting[]>;
};

/**
 * Opens the comparison of endpoints for one booking. What is large stands in the networks file, by asset (`agreeFrom`). A
 * large movement waits as long as it takes: until two endpoints show its log in the receipt, in the same block, which each
 * of them calls final.
 */
export function openAgreement(deps: Pick<TransferDeps, "metrics" | "log">, chain: EvmChain): Agreement {
  const finals = new Map<NamedRpc, Promise<number>>();
  const limits = new Map<string, bigint>();
  for (const token of chain.tokens.values()) {
    const limit = readAgreeFrom(chain.network, token);
    if (limit !== undefined) limits.set(token.token, limit);
  }
  const isShown = async (endpoint: NamedRpc, movement: Shown): Promise<boolean> => {
    const final = finals.get(endpoint) ?? readFinal(chain, endpoint.rpc);
    finals.set(endpoint, final);
    if ((await final) < movement.block_number) return false;
    const receipt = await readReceipt(endpoint.rpc, movement.tx_hash);
    if (!receipt || receipt.reverted || receipt.blockHash !== movement.block_hash) return false;
    return pairLogs(receipt.logs, chain).some((log) => isSame(log, movement));
  };
  const isAgreed = async (movement: Shown): Promise<boolean> => {
    const limit = limits.get(movement.token);
    if (limit === undefined || movement.amount < limit) return true;
    const answers = chain.endpoints.map((endpoint) =>
      isShown(endpoint, movement).catch((error: unknown) => {
        if (isTransientChainError(error)) return false;
        throw error;
      }),
    );
    const agreed = (await Promise.all(answers)).filter(Boolean).length >= AGREED_BY;
    if (!agreed) {
      deps.metrics.agreementWaits.inc({ chain: chain.chain });
      const { tx_hash: tx, amount } = movement;
      deps.log.warn({ chain: chain.chain, tx, amount: String(amount) }, "a large movement waits for a second endpoint");
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
      keep(transfers, (one) => ({ ...one, token: chain.tokens.get(one.asset)?.token ?? one.asset })),
    keepMovements: (movements) => keep(movements, (one) => one),
  };
}

function isSame(log: ReturnType<typeof pairLogs>[number], movement: Shown): boolean {
  return (
    log.logIndex === movement.log_index &&
    log.token === movement.token &&
    log.receiver === movement.receiver &&
    log.amount === movement.amount
  );
}
