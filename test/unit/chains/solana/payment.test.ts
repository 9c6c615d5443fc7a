import {
  decodeTransferCheckedInstruction,
  getAssociatedTokenAddressSync,
  TOKEN_2022_PROGRAM_ID,
  TOKEN_PROGRAM_ID,
} from "@solana/spl-token";
import { ComputeBudgetInstruction, PublicKey, TransactionMessage, VersionedTransaction } from "@solana/web3.js";
import { expect, test } from "vitest";
import { buildPayment, findTokenAccount, MEMO_PROGRAM } from "../../../../chains/solana/payment.ts";
import { blockhash, budget, buyer, makeAddress, makeTransfer, mint, relayer, treasury } from "./made.ts";

/** What the reference library reads out of our bytes. */
function read(bytes: Uint8Array) {
  const { message, signatures } = VersionedTransaction.deserialize(bytes);
  const { instructions, payerKey, recentBlockhash } = TransactionMessage.decompile(message);
  return { message, signatures, instructions, payerKey, recentBlockhash };
}

test("a payment is the budget, the checked transfer between the two associated accounts, and the memo", () => {
  const { instructions, payerKey, recentBlockhash, signatures } = read(buildPayment(makeTransfer(), budget, blockhash));
  const [limit, price, transfer, memo] = instructions;
  if (!limit || !price || !transfer || !memo) throw new Error("too few instructions");
  expect(instructions).toHaveLength(4);
  expect(payerKey.toBase58()).toBe(relayer.address);
  expect(recentBlockhash).toBe(blockhash);
  expect(signatures).toEqual([new Uint8Array(64), new Uint8Array(64)]);
  expect(ComputeBudgetInstruction.decodeSetComputeUnitLimit(limit).units).toBe(60_000);
  expect(BigInt(ComputeBudgetInstruction.decodeSetComputeUnitPrice(price).microLamports)).toBe(10_000n);
  const { keys, data } = decodeTransferCheckedInstruction(transfer, TOKEN_PROGRAM_ID);
  expect(data).toMatchObject({ amount: 12_500_000n, decimals: 6 });
  const mintKey = new PublicKey(mint);
  expect(keys.source.pubkey).toEqual(getAssociatedTokenAddressSync(mintKey, new PublicKey(buyer.address)));
  expect(keys.destination.pubkey).toEqual(getAssociatedTokenAddressSync(mintKey, new PublicKey(treasury)));
  expect(keys.owner.pubkey.toBase58()).toBe(buyer.address);
  expect(memo.programId.toBase58()).toBe(MEMO_PROGRAM);
  expect(memo.keys).toEqual([]);
  expect(memo.data.toString()).toBe("pay_0123456789abcdef");
});

test("a missing account of the receiver is made before the transfer, and our relayer pays for it", () => {
  const { instructions } = read(buildPayment(makeTransfer({ makeReceiverAccount: true }), budget, blockhash));
  const making = instructions[2];
  expect(instructions).toHaveLength(5);
  expect(making?.data).toEqual(Buffer.from([1]));
  expect(making?.keys[0]?.pubkey.toBase58()).toBe(relayer.address);
  expect(making?.keys[1]?.pubkey.toBase58()).toBe(findTokenAccount(treasury, mint, "token"));
  expect(making?.keys[2]?.pubkey.toBase58()).toBe(treasury);
});

test("a Token-2022 payment names that program and its accounts", () => {
  const transfer = makeTransfer({ program: "token-2022", makeReceiverAccount: true });
  const { instructions } = read(buildPayment(transfer, budget, blockhash));
  expect(instructions[3]?.programId).toEqual(TOKEN_2022_PROGRAM_ID);
  expect(instructions[3]?.keys[2]?.pubkey.toBase58()).toBe(findTokenAccount(treasury, mint, "token-2022"));
  expect(findTokenAccount(treasury, mint, "token-2022")).not.toBe(findTokenAccount(treasury, mint, "token"));
});

test("the same arguments give the same bytes, in version 0 and without lookup tables", () => {
  const bytes = buildPayment(makeTransfer(), budget, blockhash);
  expect(buildPayment(makeTransfer(), budget, blockhash)).toEqual(bytes);
  const { message } = read(bytes);
  expect(message.version).toBe(0);
  expect(message.addressTableLookups).toEqual([]);
});

test("the largest amount goes in, one more is refused rather than cut", () => {
  const most = 2n ** 64n - 1n;
  const { instructions } = read(buildPayment(makeTransfer({ amount: most }), budget, blockhash));
  const transfer = instructions[2];
  expect(transfer && decodeTransferCheckedInstruction(transfer).data.amount).toBe(most);
  expect(() => buildPayment(makeTransfer({ amount: most + 1n }), budget, blockhash)).toThrow();
  expect(() => buildPayment(makeTransfer({ amount: -1n }), budget, blockhash)).toThrow();
});

test("a program's address may own the receiving account", () => {
  const vault = findTokenAccount(makeAddress(), mint, "token");
  const expected = getAssociatedTokenAddressSync(new PublicKey(mint), new PublicKey(vault), true).toBase58();
  expect(findTokenAccount(vault, mint, "token")).toBe(expected);
});

test("an account looked up twice is the same, however many were looked up between", () => {
  const owner = makeAddress();
  const first = findTokenAccount(owner, mint, "token");
  expect(findTokenAccount(owner, mint, "token")).toBe(first);
  expect(findTokenAccount(owner, makeAddress(), "token")).not.toBe(first);
  expect(findTokenAccount(makeAddress(), mint, "token")).not.toBe(first);
});
