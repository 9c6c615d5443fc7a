import { base58 } from "@scure/base";
import { describeAmount } from "./account-methods.ts";
import { type Key, keyOf, mintIn } from "./account-store.ts";
import type { Holding, InnerInstruction, Run } from "./bank.ts";
import { historyCommitment, type Methods } from "./chain-methods.ts";
import { encodeKey } from "./landed-transactions.ts";
import { addressAt, type Config, configAt, inContext, readSignature, slotFor, textAt, textsAt } from "./rpc-params.ts";
import type { Commitment, IncludedTransaction, Slots } from "./slots.ts";
import { readTransaction, type WireTransaction } from "./transaction-format.ts";
import { invalidParams, RpcError } from "./validator-errors.ts";
import type { Ledger } from "./validator-state.ts";

/** Slots whose statuses are found without a search of the history. */
const statusCache = 300;

const rank: Record<Commitment, number> = { processed: 0, confirmed: 1, finalized: 2 };

/** Returns the methods for the statuses and history of transactions. */
export function historyMethods({ slots, history, read }: Ledger): Methods {
  // Decoding base58 is expensive, so only unknown signatures are validated.
  const find = (signature: string) => history.find(signature) ?? history.find(readSignature(signature));
  const isSeen = ({ slot }: IncludedTransaction, at: Commitment): boolean => rank[slots.commitmentOf(slot)] >= rank[at];
  return {
    getSignatureStatuses(params) {
      const search = configAt(params, 1)["searchTransactionHistory"] === true;
      const oldest = slots.tip().height - statusCache;
      const statuses = textsAt(params, 0, 256).map((text) => {
        const landed = find(text);
        return landed === undefined || (!search && landed.slot.height < oldest) ? null : describeStatus(landed, slots);
      });
      return inContext(slotFor(slots, { commitment: "processed" }), statuses);
    },
    getSignaturesForAddress(params) {
      const at = historyCommitment(params, 1);
      const config = configAt(params, 1);
      slotFor(slots, config);
      const isWanted = (landed: IncludedTransaction) => isSeen(landed, at);
      return page(history.of(addressAt(params, 0)), config, isWanted).map((landed) => describeEntry(landed, slots));
    },
    getTransaction(params) {
      const at = historyCommitment(params, 1);
      const config = configAt(params, 1);
      const landed = find(textAt(params, 0));
      if (landed === undefined || !isSeen(landed, at)) return null;
      return describeLanded(landed, config, (mint) => {
        const state = read(mint, "processed");
        return state === undefined ? 0 : (mintIn(state)?.decimals ?? 0);
      });
    },
  };
}

function describeStatus({ slot, execution }: IncludedTransaction, slots: Slots) {
  const confirmationStatus = slots.commitmentOf(slot);
  const err = execution.failure ?? null;
  return {
    slot: slot.slot,
    confirmations: confirmationStatus === "finalized" ? null : slots.tip().height - slot.height,
    err,
    status: err === null ? { Ok: null } : { Err: err },
    confirmationStatus,
  };
}

function describeEntry(landed: IncludedTransaction, slots: Slots) {
  const { signature, memo, slot, execution } = landed;
  return {
    signature,
    slot: slot.slot,
    err: execution.failure ?? null,
    memo,
    blockTime: slot.time,
    confirmationStatus: slots.commitmentOf(slot),
  };
}

/** Returns transactions newest first, older than `before` and newer than `until`, both exclusive. */
function page(
  oldestFirst: readonly IncludedTransaction[],
  config: Config,
  isWanted: (landed: IncludedTransaction) => boolean,
): IncludedTransaction[] {
  const { limit = 1000 } = config;
  if (typeof limit !== "number" || limit < 1 || limit > 1000) throw invalidParams("Invalid limit; max 1000");
  const bound = (signature: unknown) => (typeof signature === "string" ? readSignature(signature) : undefined);
  const [before, until] = [bound(config["before"]), bound(config["until"])];
  const found: IncludedTransaction[] = [];
  let isPast = before === undefined;
  for (let index = oldestFirst.length - 1; index >= 0 && found.length < limit; index -= 1) {
    const landed = oldestFirst[index];
    const signature = landed?.signature;
    if (landed === undefined || signature === until) break;
    if (isPast && isWanted(landed)) found.push(landed);
    isPast ||= signature === before;
  }
  return found;
}

function describeLanded(
  { bytes, slot, execution }: IncludedTransaction,
  config: Config,
  decimalsOf: (mint: Key) => number,
) {
  const { encoding = "json", maxSupportedTransactionVersion: newest } = config;
  const transaction = readTransaction(bytes);
  if (transaction.version === 0 && newest !== 0) throw unsupportedVersion();
  const err = execution.failure ?? null;
  const loaded = execution.keys.slice(transaction.keys.length).map(encodeKey);
  const writable = transaction.lookups.reduce((sum, lookup) => sum + lookup.writable.length, 0);
  const tokens = (holdings: Holding[]) => describeTokens(holdings, decimalsOf);
  return {
    slot: slot.slot,
    blockTime: slot.time,
    transaction: describeTransaction(transaction, encoding),
    ...(newest === undefined ? {} : { version: transaction.version }),
    meta: {
      err,
      status: err === null ? { Ok: null } : { Err: err },
      fee: execution.fee,
      preBalances: execution.before.map(({ lamports }) => lamports),
      postBalances: execution.after.map(({ lamports }) => lamports),
      preTokenBalances: tokens(execution.before),
      postTokenBalances: tokens(execution.after),
      innerInstructions: describeInner(execution.inner),
      logMessages: execution.logs,
      rewards: [],
      loadedAddresses: { writable: loaded.slice(0, writable), readonly: loaded.slice(writable) },
      computeUnitsConsumed: execution.units,
      ...(execution.returnData === undefined ? {} : { returnData: describeReturnData(execution.returnData) }),
    },
  };
}

const unsupportedVersion = () =>
  new RpcError(
    -32015,
    "Transaction version (0) is not supported by the requesting client. Please try the request again with the " +
      'following configuration parameter: "maxSupportedTransactionVersion": 0',
  );

function describeTransaction(transaction: WireTransaction, encoding: unknown) {
  const { bytes, signatures, header, keys, blockhash, instructions, lookups, version } = transaction;
  if (encoding === "base64") return [Buffer.from(bytes).toString("base64"), "base64"];
  if (encoding === "base58") return [base58.encode(bytes), "base58"];
  if (encoding !== "json") throw invalidParams(`unsupported encoding: ${String(encoding)}`);
  const tables = lookups.map(({ table, writable, readonly }) => ({
    accountKey: base58.encode(table),
    writableIndexes: [...writable],
    readonlyIndexes: [...readonly],
  }));
  return {
    signatures: signatures.map((signature) => base58.encode(signature)),
    message: {
      header: {
        numRequiredSignatures: header.signers,
        numReadonlySignedAccounts: header.readonlySigners,
        numReadonlyUnsignedAccounts: header.readonlyOthers,
      },
      accountKeys: keys.map((key) => encodeKey(keyOf(key))),
      recentBlockhash: blockhash,
      instructions: instructions.map((each) => ({ ...describeInstruction(each), stackHeight: 1 })),
      ...(version === 0 ? { addressTableLookups: tables } : {}),
    },
  };
}

const describeInstruction = (each: { program: number; accounts: Uint8Array; data: Uint8Array }) => ({
  programIdIndex: each.program,
  accounts: [...each.accounts],
  data: base58.encode(each.data),
});

export function describeInner(inner: InnerInstruction[][]) {
  return inner.flatMap((list, index) => {
    const instructions = list.map((each) => ({ ...describeInstruction(each), stackHeight: each.height }));
    return instructions.length === 0 ? [] : [{ index, instructions }];
  });
}

export function describeReturnData(data: Run["returnData"]) {
  if (data === undefined) return null;
  return { programId: base58.encode(data.program), data: [Buffer.from(data.data).toString("base64"), "base64"] };
}

function describeTokens(holdings: Holding[], decimalsOf: (mint: Key) => number) {
  return holdings.flatMap(({ token }, accountIndex) => {
    if (token === undefined) return [];
    const { mint, owner, program, amount } = token;
    const names = { mint: encodeKey(mint), owner: encodeKey(owner), programId: encodeKey(program) };
    return [{ accountIndex, ...names, uiTokenAmount: describeAmount(amount, decimalsOf(mint)) }];
  });
}
