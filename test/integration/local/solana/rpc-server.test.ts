import { createMint, getAccount, getOrCreateAssociatedTokenAccount, mintTo, transferChecked } from "@solana/spl-token";
import { Keypair, PublicKey } from "@solana/web3.js";
import { afterEach, expect, test, vi } from "vitest";
import { callSolana, startSolana } from "../../../../local/solana-process.ts";
import { fundTokens, type MintExtensions, makeMint } from "../../../../local/spl-tokens.ts";
import { startTestSolana, tokenBalance } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { openSigner } from "./sign-test-transfers.ts";

const solana = await startTestSolana({ own: true });
const { connection, send, signTransfer, until, relayer } = await openSigner(solana);

afterEach(() => solana.knobs.resume());

test("a buyer without SOL pays while another key pays the fee", async () => {
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
  const transaction = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
  expect(transaction?.meta).toMatchObject({ err: null, fee: 10_000 });
  const [owner, programId] = [shop.publicKey.toBase58(), solana.mint.program];
  expect(transaction?.meta?.preTokenBalances).toContainEqual(
    expect.objectContaining({ owner, uiTokenAmount: expect.objectContaining({ amount: "0" }) }),
  );
  expect(transaction?.meta?.postTokenBalances).toContainEqual(
    expect.objectContaining({ mint: mint.toBase58(), owner, programId, uiTokenAmount: amount("250000", 0.25) }),
  );
  const held = await connection.getTokenAccountsByOwner(shop.publicKey, { mint });
  expect(held.value.map(({ pubkey }) => pubkey.toBase58())).toEqual([to.address.toBase58()]);
  const balance = await connection.getTokenAccountBalance(to.address);
  expect(balance.value).toEqual(amount("250000", 0.25));
});

const amount = (text: string, uiAmount: number) => ({
  amount: text,
  decimals: 6,
  uiAmount,
  uiAmountString: String(uiAmount),
});

test("confirmTransaction resolves for a transaction that lands, and rejects when the blockhash expires", async () => {
  const latest = await connection.getLatestBlockhash();
  const { bytes } = await signTransfer();
  const signature = await send(bytes);
  expect((await connection.confirmTransaction({ signature, ...latest }, "finalized")).value.err).toBeNull();

  await solana.knobs.drop(1);
  const lost = await send((await signTransfer()).bytes);
  const waiting = connection.confirmTransaction({ signature: lost, ...(await connection.getLatestBlockhash()) });
  const refused = expect(waiting).rejects.toThrow(/block height exceeded/);
  await solana.knobs.jump(151);
  await refused;
});

test("an account's history is returned newest first, page by page, with memos", async () => {
  const to = Keypair.generate().publicKey;
  const signatures: string[] = [];
  for (const lamports of [1_000_000, 1_000_001, 1_000_002]) {
    const signature = await send((await signTransfer(lamports, to)).bytes);
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
    within: 20_000,
  });
  expect(withMemo).toMatch(/^\[\d+\] airdrop \d+$/);
});

test("a subscription receives every slot", async () => {
  const seen: number[] = [];
  const id = connection.onSlotChange(({ slot, parent, root }) => {
    expect([slot - parent, slot - root]).toEqual([1, 4]);
    seen.push(slot);
  });
  await waitFor(() => seen.length > 3, { within: 10_000 });
  await connection.removeSlotChangeListener(id);
  expect(seen.map((slot) => slot - (seen[0] ?? 0)).slice(0, 4)).toEqual([0, 1, 2, 3]);
});

test("times, epochs, fees and several accounts are returned in the form that Connection expects", async () => {
  const slot = await connection.getSlot();
  expect(Math.abs(((await connection.getBlockTime(slot)) ?? 0) - Date.now() / 1000)).toBeLessThan(60);
  await expect(connection.getBlockTime(slot + 1_000_000)).rejects.toThrow(/not available/);
  const final = await connection.getSlot("finalized");
  const block = await connection.getBlock(final, {
    transactionDetails: "none",
    rewards: false,
    maxSupportedTransactionVersion: 0,
  });
  expect(block).toMatchObject({ parentSlot: final - 1, blockHeight: final });
  expect(await connection.getEpochInfo()).toMatchObject({ epoch: 0, slotsInEpoch: 432_000 });
  expect(await connection.getVersion()).toHaveProperty("solana-core");
  expect(await connection.getRecentPrioritizationFees()).not.toEqual([]);
  const mint = new PublicKey(solana.mint.address);
  const accounts = await connection.getMultipleAccountsInfo([mint, Keypair.generate().publicKey, relayer.publicKey]);
  expect(accounts.map((account) => account?.data.length)).toEqual([82, undefined, 0]);
  const ahead = { minContextSlot: slot + 1_000_000 };
  await expect(connection.getBalance(mint, ahead)).rejects.toThrow(/Minimum context slot/);
});

test("an account receives tokens of every kind of mint", async () => {
  const holder = Keypair.generate().publicKey.toBase58();
  const kinds: MintExtensions[] = [
    { transferFee: { basisPoints: 100, maximum: 1_000n } },
    { permanentDelegate: holder },
    { transferHook: holder },
    { nonTransferable: true },
    { metadataPointer: "self" },
    { defaultFrozen: true },
    { pausable: true },
  ];
  for (const extensions of kinds) {
    const mint = await makeMint(solana.client, { extensions });
    await fundTokens(solana.client, mint, [holder], 7n);
    expect(await tokenBalance(solana, holder, mint), Object.keys(extensions)[0]).toBe(7n);
  }
});

test("bytes that are not a transaction are refused and do not end the process", async () => {
  const pid = solana.service.pid();
  const { bytes } = await signTransfer();
  const corrupted = Array.from({ length: 400 }, (_, round) => {
    const copy = Uint8Array.from(bytes);
    copy[round % copy.length] = (round * 37 + 129) & 0xff;
    return copy;
  });
  const cut = Array.from({ length: bytes.length }, (_, length) => bytes.subarray(0, length));
  const longer = [Buffer.concat([bytes, Buffer.from([0])]), Buffer.from([0x80]), Buffer.from([1, 0xff, 0xff, 0x7f])];
  for (const each of [...corrupted, ...cut, ...longer]) {
    const text = Buffer.from(each).toString("base64");
    for (const method of ["simulateTransaction", "sendTransaction"])
      await callSolana(solana.url, method, [text, { encoding: "base64", skipPreflight: true }]).catch(() => undefined);
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

test("startSolana uses the server that SOLANA_RPC_URL names, and does not end it", async () => {
  vi.stubEnv("SOLANA_RPC_URL", solana.url);
  const given = await startSolana();
  vi.unstubAllEnvs();
  expect(given).toMatchObject({ url: solana.url });
  await given.close();
  expect(solana.service.pid()).toBeGreaterThan(0);
  await expect(given.stop()).rejects.toThrow(/SOLANA_RPC_URL/);
});

test("a Solana that is killed and restarted is empty", async () => {
  const service = await startSolana({ own: true, slotMs: 20 });
  await callSolana(service.url, "local_jump", [1_000]);
  const first = service.pid();
  await service.kill("SIGKILL");
  expect(service.pid()).toBeUndefined();
  await service.start();
  expect(service.pid()).not.toBe(first);
  expect(await callSolana(service.url, "getSlot")).toBeLessThan(1_000);
  await service.close();
  expect(service.pid()).toBeUndefined();
});
