import {
  createAssociatedTokenAccountIdempotentInstruction,
  createTransferCheckedInstruction,
  decodeTransferCheckedInstruction,
  getAssociatedTokenAddressSync,
  TOKEN_2022_PROGRAM_ID,
  TOKEN_PROGRAM_ID,
} from "@solana/spl-token";
import { ComputeBudgetInstruction, PublicKey, TransactionMessage, VersionedTransaction } from "@solana/web3.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  buildPayment,
  buildTransfer,
  findTokenAccount,
  MEMO_PROGRAM,
  tokenPrograms,
} from "../../../../chains/solana/build-payment.ts";
import { blockhash, budget, buyer, makeAddress, makeTransfer, mint, relayer, treasury } from "./solana-fixtures.ts";

/** Reads our bytes with web3.js. */
function read(bytes: Uint8Array) {
  const { message, signatures } = VersionedTransaction.deserialize(bytes);
  const { instructions, payerKey, recentBlockhash } = TransactionMessage.decompile(message);
  return { message, signatures, instructions, payerKey, recentBlockhash };
}

test("a payment consists of the budget, a TransferChecked between the associated token accounts, and the memo", () => {
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

test("a missing token account of the receiver is created before the transfer at our relayer's expense", () => {
  const { instructions } = read(buildPayment(makeTransfer({ makeReceiverAccount: true }), budget, blockhash));
  const creation = instructions[2];
  expect(instructions).toHaveLength(5);
  expect(creation?.data).toEqual(Buffer.from([1]));
  expect(creation?.keys[0]?.pubkey.toBase58()).toBe(relayer.address);
  expect(creation?.keys[1]?.pubkey.toBase58()).toBe(findTokenAccount(treasury, mint, "token"));
  expect(creation?.keys[2]?.pubkey.toBase58()).toBe(treasury);
});

test("a Token-2022 payment calls that program with its token accounts", () => {
  const transfer = makeTransfer({ program: "token-2022", makeReceiverAccount: true });
  const { instructions } = read(buildPayment(transfer, budget, blockhash));
  expect(instructions[3]?.programId).toEqual(TOKEN_2022_PROGRAM_ID);
  expect(instructions[3]?.keys[2]?.pubkey.toBase58()).toBe(findTokenAccount(treasury, mint, "token-2022"));
  expect(findTokenAccount(treasury, mint, "token-2022")).not.toBe(findTokenAccount(treasury, mint, "token"));
});

test("a payment is deterministic, of version 0 and without lookup tables", () => {
  const bytes = buildPayment(makeTransfer(), budget, blockhash);
  expect(buildPayment(makeTransfer(), budget, blockhash)).toEqual(bytes);
  const { message } = read(bytes);
  expect(message.version).toBe(0);
  expect(message.addressTableLookups).toEqual([]);
});

test("the largest 64-bit amount is encoded, and a larger one is refused rather than truncated", () => {
  const largest = 2n ** 64n - 1n;
  const { instructions } = read(buildPayment(makeTransfer({ amount: largest }), budget, blockhash));
  const transfer = instructions[2];
  expect(transfer && decodeTransferCheckedInstruction(transfer).data.amount).toBe(largest);
  expect(() => buildPayment(makeTransfer({ amount: largest + 1n }), budget, blockhash)).toThrow();
  expect(() => buildPayment(makeTransfer({ amount: -1n }), budget, blockhash)).toThrow();
});

test("a program-derived address may own the receiving token account", () => {
  const vault = findTokenAccount(makeAddress(), mint, "token");
  const expected = getAssociatedTokenAddressSync(new PublicKey(mint), new PublicKey(vault), true).toBase58();
  expect(findTokenAccount(vault, mint, "token")).toBe(expected);
});

test("the associated token account of an owner and a mint is always the same", () => {
  const owner = makeAddress();
  const first = findTokenAccount(owner, mint, "token");
  expect(findTokenAccount(owner, mint, "token")).toBe(first);
  expect(findTokenAccount(owner, makeAddress(), "token")).not.toBe(first);
  expect(findTokenAccount(makeAddress(), mint, "token")).not.toBe(first);
});

test("the instructions of a transfer are those that the library of the token programs builds", () => {
  const address = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => new PublicKey(bytes).toBase58());
  const program = fc.constantFrom("token" as const, "token-2022" as const);
  const amount = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
  const decimals = fc.integer({ min: 0, max: 18 });
  const parties = { feePayer: address, payer: address, receiver: address, mint: address };
  const transfers = fc.record({ ...parties, program, amount, decimals, memo: fc.string() });
  const check = (transfer: ReturnType<typeof makeTransfer>) => {
    const { mint: token, program: name, amount: moved, decimals: places } = transfer;
    const [creation, move] = buildTransfer({ ...transfer, makeReceiverAccount: true });
    const accountOf = (owner: string) => new PublicKey(findTokenAccount(owner, token, name));
    const [source, destination] = [accountOf(transfer.payer), accountOf(transfer.receiver)];
    const [relayerKey, payer] = [new PublicKey(transfer.feePayer), new PublicKey(transfer.payer)];
    const [receiver, mintKey, tokens] = [new PublicKey(transfer.receiver), new PublicKey(token), tokenPrograms[name]];
    expect(creation).toEqual(
      createAssociatedTokenAccountIdempotentInstruction(relayerKey, destination, receiver, mintKey, tokens),
    );
    expect(move).toEqual(
      createTransferCheckedInstruction(source, mintKey, destination, payer, moved, places, [], tokens),
    );
  };
  const property = fc.property(transfers, (transfer) => check(makeTransfer(transfer)));
  fc.assert(property, { numRuns: 30 });
});
