import { createHash } from "node:crypto";
import { base58 } from "@scure/base";
import {
  apiVersion,
  commitmentOf,
  configAt,
  inContext,
  numberAt,
  type Params,
  payloadAt,
  slotFor,
  textAt,
} from "./rpc-params.ts";
import { wrapMessage } from "./transaction-format.ts";
import { invalidParams, RpcError } from "./validator-errors.ts";
import type { Ledger } from "./validator-state.ts";

export type Methods = Record<string, (params: Params) => unknown>;

const slotsInEpoch = 432_000;

/** The genesis hash, which is the same at every start, like the chain id of the local Anvil. */
export const localGenesis = base58.encode(createHash("sha256").update("a local Solana").digest());

/** Returns the methods for slots, heights, blockhashes and fees. */
export function chainMethods({ bank, slots, history, simulate }: Ledger, genesis: string): Methods {
  const slotOf = (params: Params, index = 0) => slotFor(slots, configAt(params, index));
  return {
    getHealth: () => "ok",
    getVersion: () => ({ "solana-core": apiVersion, "feature-set": 0 }),
    getGenesisHash: () => genesis,
    getSlot: (params) => slotOf(params).slot,
    getBlockHeight: (params) => slotOf(params).height,
    getTransactionCount: () => history.count(),
    getFirstAvailableBlock: () => 0,
    getLatestBlockhash(params) {
      const slot = slotOf(params);
      return inContext(slot, { blockhash: slot.blockhash, lastValidBlockHeight: slots.lastValidHeight(slot) });
    },
    isBlockhashValid(params) {
      const slot = slotOf(params, 1);
      const found = slots.ofBlockhash(textAt(params, 0));
      return inContext(slot, found !== undefined && found.height <= slot.height);
    },
    getEpochInfo(params) {
      const { slot, height } = slotOf(params);
      const epoch = Math.floor(slot / slotsInEpoch);
      const counts = { absoluteSlot: slot, blockHeight: height, transactionCount: history.count() };
      return { ...counts, epoch, slotIndex: slot % slotsInEpoch, slotsInEpoch };
    },
    getBlockTime(params) {
      const slot = numberAt(params, 0);
      const time = slots.timeOf(slot);
      if (time !== undefined) return time;
      if (slot > slots.tip().slot) throw new RpcError(-32004, `Block not available for slot ${slot}`);
      throw new RpcError(-32007, `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`);
    },
    getBlock(params) {
      const slot = numberAt(params, 0);
      if (configAt(params, 1)["transactionDetails"] !== "none")
        throw invalidParams("Invalid params: the local cluster returns blocks without their transactions.");
      const block = slots.blockOf(slot);
      if (!block || block.height > slots.at("finalized").height)
        throw new RpcError(-32004, `Block not available for slot ${slot}`);
      const { blockhash, parent, height, time } = block;
      const previousBlockhash = slots.blockOf(parent)?.blockhash ?? blockhash;
      return { blockhash, previousBlockhash, parentSlot: parent, blockHeight: height, blockTime: time };
    },
    getMinimumBalanceForRentExemption: (params) => bank.rentFor(numberAt(params, 0)),
    getFeeForMessage(params) {
      const slot = slotOf(params, 1);
      const transaction = wrapMessage(payloadAt(params, 0, "base64"));
      const isKnown = slots.ofBlockhash(transaction.blockhash) !== undefined;
      const { run } = simulate(transaction, { verify: false, anyBlockhash: isKnown });
      return inContext(slot, run.failure === "BlockhashNotFound" ? null : run.fee);
    },
    // There is no congestion.
    getRecentPrioritizationFees: () => slots.newest(150).map(({ slot }) => ({ slot, prioritizationFee: 0 })),
  };
}

/** Returns the commitment of a history request, which must be at least `confirmed`. */
export function historyCommitment(params: Params, index: number) {
  const commitment = commitmentOf(configAt(params, index));
  if (commitment === "processed") throw invalidParams("Method does not support commitment below `confirmed`");
  return commitment;
}
