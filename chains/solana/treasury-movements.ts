import { base58 } from "@scure/base";
import { TokenInstruction, TransferFeeInstruction } from "@solana/spl-token";
import type { TokenBalance, VersionedTransactionResponse } from "@solana/web3.js";
import { cleanText } from "../../runtime/clean-text.ts";
import { ChainError } from "../errors.ts";
import { MEMO_PROGRAM, MEMO_PROGRAM_1, tokenProgramIds } from "./build-payment.ts";
import type { ParsedTransaction } from "./wire-format.ts";

/** The treasury whose movements are read: its owner, and its token accounts with their mints. */
export type Treasury = { owner: string; accounts: ReadonlyMap<string, string> };

/** Tokens that moved into or out of the treasury. */
export type Movement = {
  mint: string;
  /**
   * The owners of the token accounts; empty if unknown. The treasury's owner is only ever the owner of a listed account,
   * so one of the two is the treasury and the other one is not.
   */
  payer: string;
  receiver: string;
  /** The amount that the treasury received or paid, in the token's smallest unit; never zero. */
  amount: bigint;
  /**
   * The memo after the transfer, or the transaction's only memo if there is only one movement. Cleaned, at most 200
   * characters.
   */
  memo: string | undefined;
  /** The position in the transaction; every endpoint gives the same one. */
  index: number;
};

/** `into` is the direction. */
type DirectedMovement = Omit<Movement, "memo"> & { into: boolean };
/** An outer or inner instruction. `index` is the order of execution. */
type Step = { index: number; program: string; accounts: string[]; data: Uint8Array };
/** A transfer of an instruction. `source` is undefined for minted tokens, `destination` for burnt ones. */
type Transfer = { source?: string | undefined; destination?: string | undefined; sent: bigint; arrived: bigint };

/**
 * Maximum length of a memo, in code points. Our memos have 66 characters. A program can write kilobytes, which exceeds the
 * size of a Postgres index entry.
 */
const MAX_MEMO_LENGTH = 200;
/** Index distance of outer instructions. Inner instructions get the indexes between; the runtime runs at most 64. */
const PER_OUTER = 256;
/** The first index of movements that no instruction shows, above all indexes of instructions. */
const FIRST_UNEXPLAINED_INDEX = 65_536;

/** Returns true for the index of a movement that no instruction explains: an endpoint may have left something out. */
export const isUnexplained = (index: number): boolean => index >= FIRST_UNEXPLAINED_INDEX;

const programsOfTokens: ReadonlySet<string> = new Set(Object.values(tokenProgramIds));

/**
 * Returns the movements of a transaction into and out of the treasury, read from its outer and inner instructions. The
 * token balances before and after are authoritative: if they show a change that the instructions do not explain (a program
 * moved tokens in a way that we cannot read), the function adds one movement per mint with an unknown counterparty. A
 * failed transaction has no movements. Throws ChainError `rpc_answer` for a response without balances, or without the addresses of
 * its lookup tables.
 */
export function readMovements(tx: VersionedTransactionResponse, treasury: Treasury): Movement[] {
  const { meta } = tx;
  if (!meta?.preTokenBalances || !meta.postTokenBalances) {
    throw new ChainError("rpc_answer", { detail: "a transaction has no token balances" });
  }
  if (meta.err) return [];
  const { staticAccountKeys, addressTableLookups } = tx.transaction.message;
  if (addressTableLookups.length > 0 && !meta.loadedAddresses)
    throw new ChainError("rpc_answer", { detail: "a transaction has no addresses of its lookup tables" });
  const { writable = [], readonly = [] } = meta.loadedAddresses ?? {};
  const addresses = [...staticAccountKeys, ...writable, ...readonly].map((key) => key.toBase58());
  const owners = readOwners(meta.preTokenBalances, meta.postTokenBalances, addresses, treasury);
  const steps = listSteps(tx, addresses);
  const found = steps.flatMap((step) => readMovement(step, treasury, owners));
  const before = readHoldings(meta.preTokenBalances, addresses, treasury);
  const after = readHoldings(meta.postTokenBalances, addresses, treasury);
  const unexplained = [...new Set(treasury.accounts.values())].flatMap((mint) =>
    findUnexplained(mint, treasury, found, sum(after, mint, treasury) - sum(before, mint, treasury), addresses),
  );
  return addMemos([...found, ...unexplained], steps);
}

/**
 * Returns the index that `readMovements` gives to the transfer which a memo follows, in a transaction that we built. Throws if
 * there is no such memo.
 */
export function findTransferIndex({ instructions }: Pick<ParsedTransaction, "instructions">, memo: string): number {
  const text = Buffer.from(memo, "utf8");
  const end = instructions.findIndex(({ program, data }) => program === MEMO_PROGRAM && text.equals(data));
  const position = instructions
    .slice(0, Math.max(0, end))
    .findLastIndex(
      ({ program, data }) => programsOfTokens.has(program) && data[0] === TokenInstruction.TransferChecked,
    );
  if (position < 0) throw new Error(`a transaction of ours has no transfer with the memo ${memo}`);
  return position * PER_OUTER;
}

/** Returns the memos of a transaction of ours: the natural keys of its payouts. */
export function listMemos({ instructions }: Pick<ParsedTransaction, "instructions">): string[] {
  return instructions
    .filter(({ program }) => program === MEMO_PROGRAM)
    .map(({ data }) => Buffer.from(data).toString("utf8"));
}

function listSteps(tx: VersionedTransactionResponse, addresses: readonly string[]): Step[] {
  const inner = new Map((tx.meta?.innerInstructions ?? []).map((one) => [one.index, one.instructions]));
  const at = (index: number) => addresses[index] ?? "";
  return tx.transaction.message.compiledInstructions.flatMap((outer, position) => [
    {
      index: position * PER_OUTER,
      program: at(outer.programIdIndex),
      accounts: [...outer.accountKeyIndexes].map(at),
      data: outer.data,
    },
    ...(inner.get(position) ?? []).map((one, place) => ({
      index: position * PER_OUTER + 1 + place,
      program: at(one.programIdIndex),
      accounts: one.accounts.map(at),
      data: base58.decode(one.data),
    })),
  ]);
}

/** Returns the movement of an instruction if it transfers tokens into or out of the treasury. */
function readMovement(step: Step, treasury: Treasury, owners: ReadonlyMap<string, string>): DirectedMovement[] {
  const transfer = readTransfer(step);
  if (!transfer) return [];
  const { source = "", destination = "", sent, arrived } = transfer;
  const [from, to] = [treasury.accounts.get(source), treasury.accounts.get(destination)];
  const mint = from ?? to;
  const amount = from === undefined ? arrived : sent;
  if (mint === undefined || (from !== undefined && to !== undefined) || amount === 0n) return [];
  const ownerOf = (account: string, ours: boolean) => (ours ? treasury.owner : (owners.get(account) ?? ""));
  const [payer, receiver] = [ownerOf(source, from !== undefined), ownerOf(destination, to !== undefined)];
  return [{ mint, payer, receiver, amount, index: step.index, into: to !== undefined }];
}

/** Decodes an instruction of the token programs that moves tokens. */
function readTransfer({ program, accounts, data }: Step): Transfer | undefined {
  if (!programsOfTokens.has(program)) return undefined;
  const [first, second, third] = accounts;
  const plain = () => ({ sent: readAmount(data, 1), arrived: readAmount(data, 1) });
  switch (data[0]) {
    case TokenInstruction.Transfer:
      return { source: first, destination: second, ...plain() };
    case TokenInstruction.TransferChecked:
      return { source: first, destination: third, ...plain() };
    case TokenInstruction.MintTo:
    case TokenInstruction.MintToChecked:
      return { destination: second, ...plain() };
    case TokenInstruction.Burn:
    case TokenInstruction.BurnChecked:
      return { source: first, ...plain() };
    case TokenInstruction.TransferFeeExtension: {
      if (data[1] !== TransferFeeInstruction.TransferCheckedWithFee) return undefined;
      const sent = readAmount(data, 2);
      return { source: first, destination: third, sent, arrived: sent - readAmount(data, 11) };
    }
    default:
      return undefined;
  }
}

function readAmount(data: Uint8Array, at: number): bigint {
  return data.length < at + 8 ? 0n : Buffer.from(data).readBigUInt64LE(at);
}

/**
 * Returns the owners of token accounts that are not listed; empty where the owner is uncertain. Classic Token accounts can
 * be given away without the consent of their new owner: an account that changed hands may have been anyone's when tokens
 * moved, and one that belongs to the treasury's owner may have been a stranger's. What came from it is no payout of ours.
 */
function readOwners(
  before: readonly TokenBalance[],
  after: readonly TokenBalance[],
  addresses: readonly string[],
  treasury: Treasury,
): Map<string, string> {
  const owners = new Map<string, string>();
  for (const { accountIndex, owner = "" } of [...before, ...after]) {
    const address = addresses[accountIndex] ?? "";
    const isCertain = (owners.get(address) ?? owner) === owner && owner !== treasury.owner;
    owners.set(address, isCertain ? owner : "");
  }
  return owners;
}

/** Returns the balances of the treasury's token accounts. */
function readHoldings(
  balances: readonly TokenBalance[],
  addresses: readonly string[],
  treasury: Treasury,
): Map<string, bigint> {
  const held = balances.map(
    ({ accountIndex, uiTokenAmount }) => [addresses[accountIndex] ?? "", uiTokenAmount] as const,
  );
  const ours = held.filter(([address]) => treasury.accounts.has(address));
  return new Map(ours.map(([address, { amount }]) => [address, BigInt(amount)]));
}

function sum(holdings: ReadonlyMap<string, bigint>, mint: string, { accounts }: Treasury): bigint {
  return [...holdings].reduce((total, [address, held]) => (accounts.get(address) === mint ? total + held : total), 0n);
}

/** Returns the balance change of a mint that the instructions do not explain, as one movement. */
function findUnexplained(
  mint: string,
  { owner, accounts }: Treasury,
  found: readonly DirectedMovement[],
  change: bigint,
  addresses: readonly string[],
): DirectedMovement[] {
  const ofMint = found.filter((one) => one.mint === mint);
  const rest = ofMint.reduce((left, { into, amount }) => (into ? left - amount : left + amount), change);
  if (rest === 0n) return [];
  const index = FIRST_UNEXPLAINED_INDEX + addresses.findIndex((address) => accounts.get(address) === mint);
  if (rest > 0n) return [{ mint, payer: "", receiver: owner, amount: rest, index, into: true }];
  return [{ mint, payer: owner, receiver: "", amount: -rest, index, into: false }];
}

function addMemos(found: readonly DirectedMovement[], steps: readonly Step[]): Movement[] {
  const memos = steps.filter(({ program }) => program === MEMO_PROGRAM || program === MEMO_PROGRAM_1);
  const read = (step: Step | undefined) => step && cleanText(Buffer.from(step.data).toString("utf8"), MAX_MEMO_LENGTH);
  const [only, ...others] = memos;
  return found.map(({ mint, payer, receiver, amount, index }, at) => {
    const next = found[at + 1]?.index ?? Number.POSITIVE_INFINITY;
    const following = memos.find((memo) => memo.index > index && memo.index < next);
    const single = found.length === 1 && others.length === 0 ? only : undefined;
    return { mint, payer, receiver, amount, memo: read(following ?? single), index };
  });
}
