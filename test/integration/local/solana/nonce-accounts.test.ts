import {
  Keypair,
  NONCE_ACCOUNT_LENGTH,
  type PublicKey,
  SystemProgram,
  Transaction,
  type TransactionInstruction,
} from "@solana/web3.js";
import { afterEach, expect, test } from "vitest";
import { startTestSolana } from "../../../support/test-solana.ts";
import { openSigner } from "./sign-test-transfers.ts";

const solana = await startTestSolana({ own: true });
const { connection, send, statusOf, until, relayer } = await openSigner(solana);

afterEach(() => solana.knobs.resume());

async function makeNonce(): Promise<PublicKey> {
  const nonce = Keypair.generate();
  const lamports = await connection.getMinimumBalanceForRentExemption(NONCE_ACCOUNT_LENGTH);
  const parts = { fromPubkey: relayer.publicKey, noncePubkey: nonce.publicKey, authorizedPubkey: relayer.publicKey };
  const transaction = new Transaction({ feePayer: relayer.publicKey, ...(await connection.getLatestBlockhash()) });
  transaction.add(SystemProgram.createNonceAccount({ ...parts, lamports }));
  transaction.sign(relayer, nonce);
  await until(await send(transaction.serialize()), "confirmed");
  return nonce.publicKey;
}

const read = async (noncePubkey: PublicKey, commitment: "processed" | "confirmed" = "processed"): Promise<string> =>
  (await connection.getNonce(noncePubkey, commitment))?.nonce ?? "";

function signWith(noncePubkey: PublicKey, nonce: string, instruction: TransactionInstruction): Uint8Array {
  const nonceInstruction = SystemProgram.nonceAdvance({ noncePubkey, authorizedPubkey: relayer.publicKey });
  const transaction = new Transaction({ feePayer: relayer.publicKey, nonceInfo: { nonce, nonceInstruction } });
  transaction.add(instruction).sign(relayer);
  return transaction.serialize();
}

const transferTo = (lamports: number, toPubkey: PublicKey) =>
  SystemProgram.transfer({ fromPubkey: relayer.publicKey, toPubkey, lamports });

test("a transaction with a nonce lands once, however old it is", async () => {
  const account = await makeNonce();
  const to = Keypair.generate().publicKey;
  const nonce = await read(account);
  const [bytes, other] = [
    signWith(account, nonce, transferTo(1_000_000, to)),
    signWith(account, nonce, transferTo(2_000_000, to)),
  ];
  await solana.knobs.jump(400);
  expect((await statusOf(await send(bytes)))?.err).toBeNull();
  expect(await read(account)).not.toBe(nonce);
  await expect(send(other)).rejects.toThrow(/Blockhash not found/);
  await solana.knobs.jump(400);
  await expect(send(bytes)).rejects.toThrow(/already been processed/);
  expect(await connection.getBalance(to)).toBe(1_000_000);
});

test("a failed transaction with a nonce advances the nonce and pays its fee", async () => {
  const account = await makeNonce();
  const nonce = await read(account);
  await solana.knobs.jump(1);
  const before = await connection.getBalance(relayer.publicKey, "processed");
  const signature = await send(signWith(account, nonce, transferTo(9e12, account)), true);
  expect((await statusOf(signature))?.err).toEqual({ InstructionError: [1, { Custom: 1 }] });
  expect(await read(account)).not.toBe(nonce);
  expect(before - (await connection.getBalance(relayer.publicKey, "processed"))).toBe(5_000);
});

test("a nonce account advances once per slot", async () => {
  const account = await makeNonce();
  const to = Keypair.generate().publicKey;
  await solana.knobs.pause();
  await solana.knobs.jump(1);
  await send(signWith(account, await read(account), transferTo(1_000_000, to)));
  const second = signWith(account, await read(account), transferTo(1_000_001, to));
  await expect(send(second)).rejects.toThrow(/Blockhash not found/);
  await solana.knobs.jump(1);
  expect((await statusOf(await send(second)))?.err).toBeNull();
});

test("a rollback restores the nonce", async () => {
  const account = await makeNonce();
  await solana.knobs.pause();
  await solana.knobs.jump(5);
  const nonce = await read(account);
  const bytes = signWith(account, nonce, transferTo(1_000_000, Keypair.generate().publicKey));
  const signature = await send(bytes);
  expect(await solana.knobs.rollback(1)).toEqual([signature]);
  expect(await read(account)).toBe(nonce);
  expect(await send(bytes)).toBe(signature);
});
