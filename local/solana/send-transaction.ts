import { describe } from "./account-methods.ts";
import type { Run } from "./bank.ts";
import type { Methods } from "./chain-methods.ts";
import { describeInner, describeReturnData } from "./history-methods.ts";
import { type Config, configAt, inContext, membersOf, payloadAt, readAddress, slotFor } from "./rpc-params.ts";
import { readTransaction, type WireTransaction } from "./transaction-format.ts";
import { invalidParams, RpcError, sentenceOf } from "./validator-errors.ts";
import type { Ledger } from "./validator-state.ts";

export type Submit = {
  methods: Methods;
  /** Accepts a transaction, which lands now, later or never. */
  accept(transaction: WireTransaction): void;
  /** Drops the next accepted transactions. */
  drop(count: number): void;
  /** Makes accepted transactions wait a number of slots before they land. */
  hold(slots: number): void;
};

/** Returns the methods that simulate and send transactions. */
export function openSubmit(ledger: Ledger): Submit {
  const { slots, simulate } = ledger;
  const waiting = new Map<string, { transaction: WireTransaction; from: number }>();
  let toDrop = 0;
  let toWait = 0;

  function accept(transaction: WireTransaction): void {
    if (toDrop > 0) {
      toDrop -= 1;
      return;
    }
    if (toWait === 0) {
      ledger.land(transaction);
      return;
    }
    const { signature } = transaction;
    if (!waiting.has(signature)) waiting.set(signature, { transaction, from: slots.tip().height + toWait });
  }

  ledger.onChange(() => {
    const { height } = slots.tip();
    for (const [signature, { transaction, from }] of waiting) {
      if (from > height) continue;
      waiting.delete(signature);
      ledger.land(transaction);
    }
  });

  return {
    accept,
    drop(count) {
      toDrop = count;
    },
    hold(slots) {
      toWait = slots;
    },
    methods: {
      sendTransaction(params) {
        const config = configAt(params, 1);
        const transaction = readTransaction(payloadAt(params, 0, config["encoding"]));
        slotFor(slots, config);
        if (config["skipPreflight"] !== true) preflight(ledger, transaction);
        accept(transaction);
        return transaction.signature;
      },
      simulateTransaction(params) {
        const config = configAt(params, 1);
        const { sigVerify = false, replaceRecentBlockhash = false } = config;
        if (sigVerify === true && replaceRecentBlockhash === true)
          throw invalidParams("sigVerify may not be used with replaceRecentBlockhash");
        const slot = slotFor(slots, config);
        const transaction = readTransaction(payloadAt(params, 0, config["encoding"]));
        const options = { verify: sigVerify === true, anyBlockhash: replaceRecentBlockhash === true };
        const { run, after } = simulate(transaction, options);
        if (run.failure === "SignatureFailure") throw badSignature();
        const tip = slots.tip();
        const replacement = { blockhash: tip.blockhash, lastValidBlockHeight: slots.lastValidHeight(tip) };
        return inContext(slot, {
          ...describeRun(run, config),
          accounts: wanted(config, run, (key) => after().get(key) ?? ledger.read(key, "processed")),
          replacementBlockhash: replaceRecentBlockhash === true ? replacement : null,
        });
      },
    },
  };
}

const badSignature = () => new RpcError(-32003, "Transaction signature verification failure");

function preflight({ simulate }: Ledger, transaction: WireTransaction): void {
  const { run } = simulate(transaction, { verify: true, anyBlockhash: false });
  if (run.failure === undefined) return;
  if (run.failure === "SignatureFailure") throw badSignature();
  const data = { ...describeRun(run, {}), accounts: null, replacementBlockhash: null };
  throw new RpcError(-32002, `Transaction simulation failed: ${sentenceOf(run.failure)}`, data);
}

function describeRun({ failure, logs, units, inner, returnData, fee }: Run, { innerInstructions }: Config) {
  return {
    err: failure ?? null,
    logs,
    unitsConsumed: units,
    fee,
    returnData: describeReturnData(returnData),
    innerInstructions: innerInstructions === true ? describeInner(inner) : null,
  };
}

/** Returns the accounts that a simulation request asks for, or null when the transaction failed. */
function wanted({ accounts }: Config, { failure }: Run, after: (key: string) => Parameters<typeof describe>[0]) {
  if (typeof accounts !== "object" || accounts === null || failure !== undefined) return null;
  const { addresses, encoding = "base64" } = membersOf(accounts);
  if (!Array.isArray(addresses)) throw invalidParams("Invalid params: expected addresses");
  return addresses.map((address) => {
    const state = after(readAddress(String(address)));
    return state === undefined || state.lamports === 0n ? null : describe(state, { encoding });
  });
}
