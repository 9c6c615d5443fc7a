import { createTransferCheckedInstruction } from "@solana/spl-token";
import {
  AddressLookupTableProgram,
  ComputeBudgetProgram,
  Keypair,
  type MessageV0,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { afterEach, expect, test } from "vitest";
import { keypairOf } from "../../../../local/solana-client.ts";
import { callSolana } from "../../../../local/solana-process.ts";
import { tokenAccountOf } from "../../../../local/spl-tokens.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";
import { fundedKey, openSigner } from "./sign-test-transfers.ts";

const solana = await startTestSolana({ own: true });
const { connection, send, signTransfer, statusOf, until, relayer } = await openSigner(solana);

afterEach(() => solana.knobs.resume());

test("a transaction is processed at once, confirmed one slot later and final after four", async () => {
  await solana.knobs.pause();
  const { bytes, to } = await signTransfer();
  const signature = await send(bytes);
  expect(await statusOf(signature)).toMatchObject({ confirmationStatus: "processed", confirmations: 0, err: null });
  expect(await connection.getBalance(to, "processed")).toBe(1_000_000);
  expect(await connection.getBalance(to, "confirmed")).toBe(0);
  await solana.knobs.jump(1);
  expect(await statusOf(signature)).toMatchObject({ confirmationStatus: "confirmed", confirmations: 1 });
  expect(await connection.getBalance(to, "confirmed")).toBe(1_000_000);
  await solana.knobs.jump(2);
  expect(await statusOf(signature)).toMatchObject({ confirmationStatus: "confirmed" });
  expect(await connection.getBalance(to, "finalized")).toBe(0);
  await solana.knobs.jump(1);
  expect(await statusOf(signature)).toMatchObject({ confirmationStatus: "finalized", confirmations: null });
  expect(await connection.getBalance(to, "finalized")).toBe(1_000_000);
});

test("a transaction that is sent twice is refused the second time, and without preflight has no second effect", async () => {
  const { bytes, to } = await signTransfer();
  const signature = await send(bytes);
  await expect(send(bytes)).rejects.toThrow(/already been processed/);
  expect(await send(bytes, true)).toBe(signature);
  await until(signature, "finalized");
  expect(await connection.getBalance(to)).toBe(1_000_000);
});

test("a blockhash is valid for 150 blocks and not one more", async () => {
  await solana.knobs.pause();
  const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash("processed");
  const height = await connection.getBlockHeight("processed");
  expect(lastValidBlockHeight - height).toBe(150);
  const [early, late] = [await signTransfer(), await signTransfer()];
  await solana.knobs.jump(149);
  expect(await statusOf(await send(early.bytes))).toBeDefined();
  expect((await connection.isBlockhashValid(blockhash, { commitment: "processed" })).value).toBe(true);
  await solana.knobs.jump(2);
  expect((await connection.isBlockhashValid(blockhash, { commitment: "processed" })).value).toBe(false);
  await expect(send(late.bytes)).rejects.toThrow(/Blockhash not found/);
  expect(await statusOf(await send(late.bytes, true))).toBeUndefined();
});

test("an old status is returned only to a caller that searches the history", async () => {
  const signature = await send((await signTransfer()).bytes);
  await solana.knobs.jump(301);
  expect(await statusOf(signature)).toBeUndefined();
  const searched = await connection.getSignatureStatuses([signature], { searchTransactionHistory: true });
  expect(searched.value[0]).toMatchObject({ confirmationStatus: "finalized" });
});

test("the preflight refuses a failing transaction, which without preflight lands and pays its fee", async () => {
  const payer = await fundedKey(solana);
  const transaction = new Transaction({ feePayer: payer.publicKey, ...(await connection.getLatestBlockhash()) });
  transaction.add(SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: relayer.publicKey, lamports: 9e9 }));
  transaction.sign(payer);
  const bytes = transaction.serialize();
  const refusal = await send(bytes).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ message: expect.stringContaining("custom program error: 0x1") });
  const answer = await callSolana(solana.url, "sendTransaction", [
    Buffer.from(bytes).toString("base64"),
    { encoding: "base64" },
  ]).catch((error: unknown) => error);
  const logs = expect.arrayContaining([expect.stringContaining("failed")]);
  expect(answer).toMatchObject({ code: -32002, data: { err: { InstructionError: [0, { Custom: 1 }] }, logs } });

  const signature = await send(bytes, true);
  expect(await statusOf(signature)).toMatchObject({ err: { InstructionError: [0, { Custom: 1 }] } });
  await until(signature, "confirmed");
  expect(await connection.getBalance(payer.publicKey)).toBe(1_000_000_000 - 5_000);
});

test("the fee payer pays the priority fee", async () => {
  const before = await connection.getBalance(relayer.publicKey);
  const to = Keypair.generate().publicKey;
  const transaction = new Transaction({ feePayer: relayer.publicKey, ...(await connection.getLatestBlockhash()) });
  transaction.add(
    ComputeBudgetProgram.setComputeUnitLimit({ units: 10_000 }),
    ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 2_000_000 }),
    SystemProgram.transfer({ fromPubkey: relayer.publicKey, toPubkey: to, lamports: 1_000_000 }),
  );
  expect((await connection.getFeeForMessage(transaction.compileMessage())).value).toBe(25_000);
  transaction.sign(relayer);
  const signature = await send(transaction.serialize());
  await until(signature, "confirmed");
  expect(before - (await connection.getBalance(relayer.publicKey))).toBe(1_000_000 + 25_000);
  expect((await connection.getTransaction(signature))?.meta?.fee).toBe(25_000);
});

test("a transaction with a wrong signature is refused and never lands", async () => {
  const { bytes } = await signTransfer();
  bytes[10] = (bytes[10] ?? 0) ^ 1;
  await expect(send(bytes)).rejects.toThrow(/signature verification failure/);
  expect(await statusOf(await send(bytes, true))).toBeUndefined();
});

test("a simulation returns the outcome and changes nothing", async () => {
  const buyer = await fundSolanaBuyer(solana, 500n);
  const owner = new PublicKey(buyer.address);
  const from = new PublicKey(tokenAccountOf(solana.mint, buyer.address));
  const mint = new PublicKey(solana.mint.address);
  const to = new PublicKey(tokenAccountOf(solana.mint, (await fundSolanaBuyer(solana, 1n)).address));
  const { blockhash } = await connection.getLatestBlockhash();
  const pay = createTransferCheckedInstruction(from, mint, to, owner, 200n, 6);
  const parts = { payerKey: relayer.publicKey, recentBlockhash: blockhash, instructions: [pay] };
  const transaction = new VersionedTransaction(new TransactionMessage(parts).compileToV0Message());
  const accounts = { encoding: "base64" as const, addresses: [to.toBase58()] };
  const unsigned = await connection.simulateTransaction(transaction, { sigVerify: false });
  expect(unsigned.value.err).toBeNull();
  await expect(connection.simulateTransaction(transaction, { sigVerify: true })).rejects.toThrow(
    /verification failure/,
  );
  transaction.sign([relayer, keypairOf(buyer)]);
  const { value } = await connection.simulateTransaction(transaction, { sigVerify: true, accounts });
  expect(value.err).toBeNull();
  expect(value.unitsConsumed).toBeGreaterThan(0);
  const data = Buffer.from(value.accounts?.[0]?.data[0] ?? "", "base64");
  expect(data.readBigUInt64LE(64)).toBe(201n);
  expect(await tokenBalance(solana, buyer.address)).toBe(500n);
});

test("accounts of a lookup table are loaded, and an index beyond its end refuses the transaction", async () => {
  const [to, other] = [Keypair.generate().publicKey, Keypair.generate().publicKey];
  const us = relayer.publicKey;
  const recentSlot = await connection.getSlot();
  const [create, table] = AddressLookupTableProgram.createLookupTable({ authority: us, payer: us, recentSlot });
  const parts = { lookupTable: table, authority: us, payer: us, addresses: [to, other] };
  const extend = AddressLookupTableProgram.extendLookupTable(parts);
  const making = new Transaction({ feePayer: us, ...(await connection.getLatestBlockhash()) }).add(create, extend);
  making.sign(relayer);
  await until(await send(making.serialize()), "confirmed");
  const found = (await connection.getAddressLookupTable(table)).value;
  if (found === null) throw new Error("there is no lookup table");
  expect(found.state.addresses.map(String)).toEqual([to, other].map(String));

  const { blockhash } = await connection.getLatestBlockhash();
  const give = SystemProgram.transfer({ fromPubkey: us, toPubkey: to, lamports: 1_000_000 });
  const message = new TransactionMessage({ payerKey: us, recentBlockhash: blockhash, instructions: [give] });
  const compiled = message.compileToV0Message([found]);
  expect(compiled.addressTableLookups).toHaveLength(1);
  const signature = await send(sign(compiled));
  await until(signature, "confirmed");
  const landed = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
  expect(landed?.meta?.loadedAddresses?.writable.map(String)).toEqual([String(to)]);
  expect(landed?.meta?.postBalances.at(-1)).toBe(1_000_000);
  await expect(connection.getTransaction(signature)).rejects.toThrow(/maxSupportedTransactionVersion/);

  for (const lookup of compiled.addressTableLookups) lookup.writableIndexes[0] = 9;
  await expect(send(sign(compiled))).rejects.toThrow(/InvalidAddressLookupTableIndex/);
  expect(await statusOf(await send(sign(compiled), true))).toBeUndefined();
});

function sign(message: MessageV0): Uint8Array {
  const transaction = new VersionedTransaction(message);
  transaction.sign([relayer]);
  return transaction.serialize();
}
