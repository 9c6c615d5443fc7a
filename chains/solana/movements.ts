import { base58 } from "@scure/base";
import { TokenInstruction, TransferFeeInstruction } from "@solana/spl-token";
import type { TokenBalance, VersionedTransactionResponse } from "@solana/web3.js";
import { cleanText } from "../../ops/clean-text.ts";
import { ChainFault } from "../faults.ts";
import { MEMO_PROGRAM, MEMO_PROGRAM_1, tokenPrograms } from "./payment.ts";

/** The accounts whose movements are read: token accounts of one owner, each with its mint. */
export type Treasury = { owner: string; accounts: ReadonlyMap<string, string> };

/** Tokens that came into the treasury or went out of it. */
export type Movement = {
  mint: string;
  /** Who paid and who received, by the owners of the token accounts; empty where it cannot be known. */
  payer: string;
  receiver: string;
  /** What the treasury got or gave, in the token's smallest unit; never zero. */
  amount: bigint;
  /** The memo that stands behind the transfer, or the only one there is beside the only movement; cleaned, at most 200 characters. */
  memo: string | undefined;
  /** The place in the transaction; the same however often and by whomever it is read. */
  index: number;
};

/** `into` says which way: the treasury's owner can stand on both sides, with an account that is not listed. */
type Found = Omit<Movement, "memo"> & { into: boolean };
/** One instruction, outer or inner, in the order they ran. */
type Step = { index: number; program: string; accounts: string[]; data: Uint8Array };
/** Token accounts as an instruction names them; none where tokens are minted or burnt. */
type Transfer = { source?: string | undefined; destination?: string | undefined; sent: bigint; arrived: bigint };

/** Ours have 66 characters; a program can write kilobytes, more than an index of Postgres takes. Code points. */
const LONGEST_MEMO = 200;
/** Inner instructions are counted behind their outer one: the runtime runs 64 in all. */
const PER_OUTER = 256;
/** Movements that no instruction shows are counted behind all instructions there can be. */
const UNEXPLAINED = 65_536;

const tokenProgramIds: ReadonlySet<string> = new Set(Object.values(tokenPrograms).map((one) => one.toBase58()));

/**
 * Reads what a transaction moved into and out of the treasury, from its instructions and those that programs called.
 * The balances before and after decide: what they show and the instructions do not (a program that moves tokens in a way
 * we cannot read) is one movement more for each mint, from or to nobody known. A transaction that failed moved nothing.
 * An answer without balances is a fault: what it moved cannot be known.
 */
export function readMovements(tx: VersionedTransactionResponse, treasury: Treasury): Movement[] {
  const { meta } = tx;
  if (!meta?.preTokenBalances || !meta.postTokenBalances) {
    throw new ChainFault("rpc_answer", { detail: "a transaction without its token balances" });
  }
  if (meta.err) return [];
  const { staticAccountKeys } = tx.transaction.message;
  const { writable = [], readonly = [] } = meta.loadedAddresses ?? {};
  const addresses = [...staticAccountKeys, ...writable, ...readonly].map((key) => key.toBase58());
  const balances = [...meta.preTokenBalances, ...meta.postTokenBalances];
  const owners = new Map(balances.map(({ accountIndex, owner = "" }) => [addresses[accountIndex] ?? "", owner]));
  const steps = listSteps(tx, addresses);
  const found = steps.flatMap((step) => readMovement(step, treasury, owners));
  const before = readHoldings(meta.preTokenBalances, addresses, treasury);
  const after = readHoldings(meta.postTokenBalances, addresses, treasury);
  const unexplained = [...new Set(treasury.accounts.values())].flatMap((mint) =>
    findUnexplained(mint, treasury, found, sum(after, mint, treasury) - sum(before, mint, treasury), addresses),
  );
  return addMemos([...found, ...unexplained], steps);
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

/** The movement an instruction makes, if it crosses the treasury's border. */
function readMovement(step: Step, treasury: Treasury, owners: ReadonlyMap<string, string>): Found[] {
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

/** What an instruction of the token programs moves, by the layouts of their instructions. */
function readTransfer({ program, accounts, data }: Step): Transfer | undefined {
  if (!tokenProgramIds.has(program)) return undefined;
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

/** What the treasury's accounts held. */
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

/** What changed beyond what the instructions say, as one movement. */
function findUnexplained(
  mint: string,
  { owner, accounts }: Treasury,
  found: readonly Found[],
  change: bigint,
  addresses: readonly string[],
): Found[] {
  const ofMint = found.filter((one) => one.mint === mint);
  const rest = ofMint.reduce((left, { into, amount }) => (into ? left - amount : left + amount), change);
  if (rest === 0n) return [];
  const index = UNEXPLAINED + addresses.findIndex((address) => accounts.get(address) === mint);
  if (rest > 0n) return [{ mint, payer: "", receiver: owner, amount: rest, index, into: true }];
  return [{ mint, payer: owner, receiver: "", amount: -rest, index, into: false }];
}

function addMemos(found: readonly Found[], steps: readonly Step[]): Movement[] {
  const memos = steps.filter(({ program }) => program === MEMO_PROGRAM || program === MEMO_PROGRAM_1);
  const read = (step: Step | undefined) => step && cleanText(Buffer.from(step.data).toString("utf8"), LONGEST_MEMO);
  const [only, ...others] = memos;
  return found.map(({ mint, payer, receiver, amount, index }, at) => {
    const next = found[at + 1]?.index ?? Number.POSITIVE_INFINITY;
    const behind = memos.find((memo) => memo.index > index && memo.index < next);
    const alone = found.length === 1 && others.length === 0 ? only : undefined;
    return { mint, payer, receiver, amount, memo: read(behind ?? alone), index };
  });
}
