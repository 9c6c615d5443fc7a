import {
  createMint,
  createTransferCheckedInstruction,
  getAccount,
  getOrCreateAssociatedTokenAccount,
  mintTo,
  transferChecked,
} from "@solana/spl-token";
import {
  ComputeBudgetProgram,
  type Connection,
  Keypair,
  NONCE_ACCOUNT_LENGTH,
  PublicKey,
  SystemProgram,
  Transaction,
  type TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { callSolana } from "../../../../ops/local/solana.ts";
import { fundSol, keypairOf } from "../../../../ops/local/solana-client.ts";
import { fundTokens, type MintExtensions, makeMint, tokenAccountOf } from "../../../../ops/local/spl.ts";
import { fundSolanaBuyer, startTestSolana, type TestSolana, tokenBalance } from "../../../support/solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

let solana: TestSolana;
let connection: Connection;
let relayer: Keypair;

beforeAll(async () => {
  solana = await startTestSolana({ own: true });
  ({ connection } = solana.client);
  relayer = await fundedKey();
});

afterEach(async () => {
  const { knobs } = solana;
  await knobs.drop(0);
  await knobs.hold(0);
  await knobs.fail(["*"], 0, "error");
  await knobs.delay(["getSlot", "getBalance"], 0);
  await knobs.resume();
});

async function fundedKey(lamports = 1_000_000_000n): Promise<Keypair> {
  const key = Keypair.generate();
  await fundSol(solana.client, [key.publicKey.toBase58()], lamports);
  return key;
}

/** A transfer of lamports to somebody new, signed by the relayer; its bytes and its signature. */
async function signGift(lamports = 1_000_000, to = Keypair.generate().publicKey) {
  const transaction = new Transaction({ feePayer: relayer.publicKey, ...(await connection.getLatestBlockhash()) });
  transaction.add(SystemProgram.transfer({ fromPubkey: relayer.publicKey, toPubkey: to, lamports }));
  transaction.sign(relayer);
  return { bytes: transaction.serialize(), to };
}

const send = (bytes: Uint8Array, skipPreflight = false) => connection.sendRawTransaction(bytes, { skipPreflight });

async function statusOf(signature: string) {
  return (await connection.getSignatureStatuses([signature])).value[0] ?? undefined;
}

const until = (signature: string, wanted: "confirmed" | "finalized") =>
  waitFor(async () => (await statusOf(signature))?.confirmationStatus === wanted, { within: 10_000 });

describe("with an unmodified Connection and spl-token", () => {
  test("a buyer without SOL pays while another key bears the fee", async () => {
    const [buyer, shop] = [Keypair.generate(), Keypair.generate()];
    const mint = await createMint(connection, relayer, relayer.publicKey, null, 6);
    const from = await getOrCreateAssociatedTokenAccount(connection, relayer, mint, buyer.publicKey);
    const to = await getOrCreateAssociatedTokenAccount(connection, relayer, mint, shop.publicKey);
    await mintTo(connection, relayer, mint, from.address, relayer, 1_000_000n);
    const before = await connection.getBalance(relayer.publicKey);

    const signature = await transferChecked(connection, relayer, from.address, mint, to.address, buyer, 250_000n, 6);

    expect((await getAccount(connection, to.address)).amount).toBe(250_000n);
    expect(await connection.getBalance(buyer.publicKey)).toBe(0);
    expect(before - (await connection.getBalance(relayer.publicKey))).toBe(10_000);
    const told = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
    expect(told?.meta).toMatchObject({ err: null, fee: 10_000 });
    const [owner, programId] = [shop.publicKey.toBase58(), solana.mint.program];
    expect(told?.meta?.preTokenBalances).toContainEqual(
      expect.objectContaining({ owner, uiTokenAmount: expect.objectContaining({ amount: "0" }) }),
    );
    expect(told?.meta?.postTokenBalances).toContainEqual(
      expect.objectContaining({ mint: mint.toBase58(), owner, programId, uiTokenAmount: amount("250000", 0.25) }),
    );
    const held = await connection.getTokenAccountsByOwner(shop.publicKey, { mint });
    expect(held.value.map(({ pubkey }) => pubkey.toBase58())).toEqual([to.address.toBase58()]);
    const balance = await connection.getTokenAccountBalance(to.address);
    expect(balance.value).toEqual(amount("250000", 0.25));
  });

  const amount = (text: string, uiAmount: number) => ({
    ...{ amount: text, decimals: 6, uiAmount },
    uiAmountString: String(uiAmount),
  });

  test("confirmTransaction hears of a transaction that lands, and of one whose blockhash has died", async () => {
    const latest = await connection.getLatestBlockhash();
    const { bytes } = await signGift();
    const signature = await send(bytes);
    expect((await connection.confirmTransaction({ signature, ...latest }, "finalized")).value.err).toBeNull();

    await solana.knobs.drop(1);
    const lost = await send((await signGift()).bytes);
    const waiting = connection.confirmTransaction({ signature: lost, ...(await connection.getLatestBlockhash()) });
    const refused = expect(waiting).rejects.toThrow(/block height exceeded/);
    await solana.knobs.jump(151);
    await refused;
  });

  test("the history of an account is told newest first, page by page, with memos", async () => {
    const to = Keypair.generate().publicKey;
    const signatures: string[] = [];
    for (const lamports of [1_000_000, 1_000_001, 1_000_002]) {
      const signature = await send((await signGift(lamports, to)).bytes);
      await until(signature, "confirmed");
      signatures.unshift(signature);
    }
    const all = await connection.getSignaturesForAddress(to);
    expect(all.map(({ signature }) => signature)).toEqual(signatures);
    const page = await connection.getSignaturesForAddress(to, { before: signatures[0] ?? "", limit: 1 });
    expect(page.map(({ signature }) => signature)).toEqual([signatures[1]]);
    const newer = await connection.getSignaturesForAddress(to, { until: signatures[1] ?? "" });
    expect(newer.map(({ signature }) => signature)).toEqual([signatures[0]]);

    await connection.requestAirdrop(to, 1);
    const withMemo = await waitFor(async () => (await connection.getSignaturesForAddress(to))[0]?.memo ?? undefined, {
      within: 5_000,
    });
    expect(withMemo).toMatch(/^\[\d+\] gift \d+$/);
  });

  test("every kind of mint takes tokens", async () => {
    const somebody = Keypair.generate().publicKey.toBase58();
    const kinds: MintExtensions[] = [
      { transferFee: { basisPoints: 100, maximum: 1_000n } },
      { permanentDelegate: somebody },
      { transferHook: somebody },
      { nonTransferable: true },
      { metadataPointer: "self" },
      { defaultFrozen: true },
      { pausable: true },
    ];
    for (const extensions of kinds) {
      const mint = await makeMint(solana.client, { extensions });
      await fundTokens(solana.client, mint, [somebody], 7n);
      expect(await tokenBalance(solana, somebody, mint), Object.keys(extensions)[0]).toBe(7n);
    }
  });
});

describe("what becomes of a transaction", () => {
  test("it is processed at once, confirmed a slot later, final after four", async () => {
    await solana.knobs.pause();
    const { bytes, to } = await signGift();
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

  test("sent twice it is refused the second time, and does nothing when nobody looks before", async () => {
    const { bytes, to } = await signGift();
    const signature = await send(bytes);
    await expect(send(bytes)).rejects.toThrow(/already been processed/);
    expect(await send(bytes, true)).toBe(signature);
    await until(signature, "finalized");
    expect(await connection.getBalance(to)).toBe(1_000_000);
  });

  test("its blockhash lives for 150 blocks and not one more", async () => {
    await solana.knobs.pause();
    const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash("processed");
    const height = await connection.getBlockHeight("processed");
    expect(lastValidBlockHeight - height).toBe(150);
    const [early, late] = [await signGift(), await signGift()];
    await solana.knobs.jump(149);
    expect(await statusOf(await send(early.bytes))).toBeDefined();
    expect((await connection.isBlockhashValid(blockhash, { commitment: "processed" })).value).toBe(true);
    await solana.knobs.jump(2);
    expect((await connection.isBlockhashValid(blockhash, { commitment: "processed" })).value).toBe(false);
    await expect(send(late.bytes)).rejects.toThrow(/Blockhash not found/);
    expect(await statusOf(await send(late.bytes, true))).toBeUndefined();
  });

  test("a status that is old is told to who searches the history only", async () => {
    const signature = await send((await signGift()).bytes);
    await solana.knobs.jump(301);
    expect(await statusOf(signature)).toBeUndefined();
    const searched = await connection.getSignatureStatuses([signature], { searchTransactionHistory: true });
    expect(searched.value[0]).toMatchObject({ confirmationStatus: "finalized" });
  });

  test("a failing one is refused by the preflight, and charged without it", async () => {
    const payer = await fundedKey();
    const transaction = new Transaction({ feePayer: payer.publicKey, ...(await connection.getLatestBlockhash()) });
    transaction.add(
      SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: relayer.publicKey, lamports: 9e9 }),
    );
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

  test("the priority fee is taken from the fee payer", async () => {
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

  test("a signature that is wrong is refused, and never lands", async () => {
    const { bytes } = await signGift();
    bytes[10] = (bytes[10] ?? 0) ^ 1;
    await expect(send(bytes)).rejects.toThrow(/signature verification failure/);
    expect(await statusOf(await send(bytes, true))).toBeUndefined();
  });

  test("a simulation tells what would be, and changes nothing", async () => {
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
});

describe("durable nonces", () => {
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

  const gift = (lamports: number, toPubkey: PublicKey) =>
    SystemProgram.transfer({ fromPubkey: relayer.publicKey, toPubkey, lamports });

  test("a transaction with a nonce is taken however old it is, once", async () => {
    const account = await makeNonce();
    const to = Keypair.generate().publicKey;
    const nonce = await read(account);
    const [bytes, other] = [
      signWith(account, nonce, gift(1_000_000, to)),
      signWith(account, nonce, gift(2_000_000, to)),
    ];
    await solana.knobs.jump(400);
    expect((await statusOf(await send(bytes)))?.err).toBeNull();
    expect(await read(account)).not.toBe(nonce);
    await expect(send(other)).rejects.toThrow(/Blockhash not found/);
    await solana.knobs.jump(400);
    await expect(send(bytes)).rejects.toThrow(/already been processed/);
    expect(await connection.getBalance(to)).toBe(1_000_000);
  });

  test("one that fails advances its nonce and takes its fee", async () => {
    const account = await makeNonce();
    const nonce = await read(account);
    await solana.knobs.jump(1);
    const before = await connection.getBalance(relayer.publicKey, "processed");
    const signature = await send(signWith(account, nonce, gift(9e12, account)), true);
    expect((await statusOf(signature))?.err).toEqual({ InstructionError: [1, { Custom: 1 }] });
    expect(await read(account)).not.toBe(nonce);
    expect(before - (await connection.getBalance(relayer.publicKey, "processed"))).toBe(5_000);
  });

  test("an account is advanced once a slot", async () => {
    const account = await makeNonce();
    const to = Keypair.generate().publicKey;
    await solana.knobs.pause();
    await solana.knobs.jump(1);
    await send(signWith(account, await read(account), gift(1_000_000, to)));
    const second = signWith(account, await read(account), gift(1_000_001, to));
    await expect(send(second)).rejects.toThrow(/Blockhash not found/);
    await solana.knobs.jump(1);
    expect((await statusOf(await send(second)))?.err).toBeNull();
  });

  test("a rollback gives the nonce back", async () => {
    const account = await makeNonce();
    await solana.knobs.pause();
    await solana.knobs.jump(5);
    const nonce = await read(account);
    const bytes = signWith(account, nonce, gift(1_000_000, Keypair.generate().publicKey));
    const signature = await send(bytes);
    expect(await solana.knobs.rollback(1)).toEqual([signature]);
    expect(await read(account)).toBe(nonce);
    expect(await send(bytes)).toBe(signature);
  });
});

describe("the knobs", () => {
  test("a dropped transaction has a signature and nothing else", async () => {
    await solana.knobs.drop(1);
    const [lost, kept] = [await signGift(), await signGift()];
    const signature = await send(lost.bytes);
    expect((await statusOf(await send(kept.bytes)))?.err).toBeNull();
    expect(await statusOf(signature)).toBeUndefined();
    expect(await send(lost.bytes)).toBe(signature);
    expect((await statusOf(signature))?.err).toBeNull();
    await solana.knobs.drop("all");
    for (const { bytes } of [await signGift(), await signGift()])
      expect(await statusOf(await send(bytes))).toBeUndefined();
  });

  test("a held transaction lands so many slots later", async () => {
    await solana.knobs.pause();
    await solana.knobs.hold(3);
    const signature = await send((await signGift()).bytes);
    await solana.knobs.jump(2);
    expect(await statusOf(signature)).toBeUndefined();
    await solana.knobs.jump(1);
    expect(await statusOf(signature)).toMatchObject({ slot: await connection.getSlot("processed"), err: null });
  });

  test("a rollback takes back what was not final, and later slots have new numbers", async () => {
    await solana.knobs.pause();
    const stays = await signGift();
    const kept = await send(stays.bytes);
    await solana.knobs.jump(4);
    const { bytes, to } = await signGift();
    const { blockhash } = await connection.getLatestBlockhash("processed");
    const signature = await send(bytes);
    await solana.knobs.jump(2);
    const slot = await connection.getSlot("processed");
    const height = await connection.getBlockHeight("processed");

    expect(await solana.knobs.rollback(3)).toEqual([signature]);

    expect(await statusOf(signature)).toBeUndefined();
    expect(await connection.getTransaction(signature)).toBeNull();
    expect(await connection.getBalance(to, "processed")).toBe(0);
    expect(await connection.getSignaturesForAddress(to)).toEqual([]);
    expect(await statusOf(kept)).toMatchObject({ err: null });
    expect(await connection.getBalance(stays.to, "processed")).toBe(1_000_000);
    expect(await connection.getSlot("processed")).toBe(slot + 1);
    expect(await connection.getBlockHeight("processed")).toBe(height - 2);
    expect((await connection.isBlockhashValid(blockhash, { commitment: "processed" })).value).toBe(false);
    await solana.knobs.jump(5);
    expect(await solana.knobs.rollback(4)).toEqual([]);
    expect(await statusOf(kept)).toMatchObject({ confirmationStatus: "finalized" });
  });

  test("what is rolled back can land again", async () => {
    await solana.knobs.pause();
    await solana.knobs.jump(4);
    const { bytes, to } = await signGift();
    await solana.knobs.jump(2);
    const signature = await send(bytes);
    await solana.knobs.rollback(1);
    expect(await send(bytes)).toBe(signature);
    expect(await connection.getBalance(to, "processed")).toBe(1_000_000);
  });

  test("named methods fail so many times, hang, or come late", async () => {
    const { knobs, url } = solana;
    await knobs.fail(["getSlot"], 2, "error");
    for (const _ of [1, 2]) await expect(callSolana(url, "getSlot")).rejects.toMatchObject({ code: -32005 });
    expect(await callSolana(url, "getSlot")).toBeGreaterThan(0);
    expect(await callSolana(url, "getBlockHeight")).toBeGreaterThan(0);

    await knobs.fail(["getBlockHeight"], 1, "hang");
    let isAnswered = false;
    void callSolana(url, "getBlockHeight").then(
      () => (isAnswered = true),
      () => undefined,
    );
    await knobs.delay(["getSlot"], 200);
    const started = performance.now();
    await callSolana(url, "getSlot");
    expect(performance.now() - started).toBeGreaterThan(190);
    expect(isAnswered).toBe(false);
  });

  test("slots stand still and go on, as fast as one likes", async () => {
    const { knobs } = solana;
    await knobs.pause();
    const slot = await connection.getSlot("processed");
    await knobs.setSlotMs(2);
    expect(await connection.getSlot("processed")).toBe(slot);
    await knobs.resume();
    await waitFor(async () => (await connection.getSlot("processed")) > slot + 50, { within: 5_000 });
    await knobs.setSlotMs(20);
  });

  test("elsewhere a knob says that it is none", async () => {
    const { openKnobs } = await import("../../../../ops/local/solana.ts");
    const { createServer } = await import("node:http");
    const stranger = createServer((_, response) =>
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32601, message: "Method not found" } })),
    );
    await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
    const address = stranger.address();
    const port = typeof address === "object" ? address?.port : undefined;
    await expect(openKnobs(`http://127.0.0.1:${port}`).pause()).rejects.toThrow(/unset SOLANA_RPC_URL/);
    stranger.close();
  });
});

describe("the process", () => {
  test("bytes that are no transaction are refused and do not end it", async () => {
    const pid = solana.service.pid();
    const { bytes } = await signGift();
    const twisted = Array.from({ length: 400 }, (_, round) => {
      const copy = Uint8Array.from(bytes);
      copy[round % copy.length] = (round * 37 + 129) & 0xff;
      return copy;
    });
    const cut = Array.from({ length: bytes.length }, (_, length) => bytes.subarray(0, length));
    const longer = [Buffer.concat([bytes, Buffer.from([0])]), Buffer.from([0x80]), Buffer.from([1, 0xff, 0xff, 0x7f])];
    for (const each of [...twisted, ...cut, ...longer]) {
      const text = Buffer.from(each).toString("base64");
      for (const method of ["simulateTransaction", "sendTransaction"])
        await callSolana(solana.url, method, [text, { encoding: "base64", skipPreflight: true }]).catch(
          () => undefined,
        );
    }
    for (const each of [...cut, ...longer])
      await expect(
        callSolana(solana.url, "sendTransaction", [Buffer.from(each).toString("base64"), { encoding: "base64" }]),
      ).rejects.toMatchObject({ code: -32602 });
    expect(solana.service.pid()).toBe(pid);
    expect(await callSolana(solana.url, "getHealth")).toBe("ok");
  });

  test("several calls in one request are answered together", async () => {
    const call = (id: number, method: string) => ({ jsonrpc: "2.0", id, method });
    const body = JSON.stringify([call(1, "getHealth"), call(2, "nothing"), call(3, "getGenesisHash")]);
    const headers = { "content-type": "application/json" };
    const answers = await (await fetch(solana.url, { method: "POST", headers, body })).json();
    expect(answers).toMatchObject([{ id: 1, result: "ok" }, { id: 2, error: { code: -32601 } }, { id: 3 }]);
  });
});
