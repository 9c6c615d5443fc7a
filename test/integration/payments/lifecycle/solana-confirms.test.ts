import { base58 } from "@scure/base";
import {
  createApproveInstruction,
  createAssociatedTokenAccountInstruction,
  createCloseAccountInstruction,
  createTransferCheckedInstruction,
} from "@solana/spl-token";
import {
  AddressLookupTableAccount,
  ComputeBudgetProgram,
  PublicKey,
  SystemProgram,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { beforeAll, describe, expect, test } from "vitest";
import { MEMO_PROGRAM } from "../../../../chains/solana/build-payment.ts";
import { signAsWallet } from "../../../../local/solana-buyer.ts";
import { keypairOf, newSolanaKey, type SolanaKey } from "../../../../local/solana-client.ts";
import { fundTokens, makeMint, tokenAccountOf } from "../../../../local/spl-tokens.ts";
import { signChanged, type WalletChange } from "../../../support/altered-solana-transaction.ts";
import { makeConfirmSteps } from "../../../support/solana-confirm-steps.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana();
const fixture = await makeSolanaMerchantFixture(solana);
const [relayer] = fixture.keys.lanes as [SolanaKey];
const key = (address: string) => new PublicKey(address);
const stranger = newSolanaKey();
const otherMint = await makeMint(solana.client);
beforeAll(() => fundTokens(solana.client, solana.mint, [stranger.address], 0n));

const { begin, rowsOf, confirm, confirmAndVerify, treasuryBalance, expectUntouched, finishPayment } =
  makeConfirmSteps(fixture);

const limit = (units: number) => ComputeBudgetProgram.setComputeUnitLimit({ units });
const price = (microLamports: bigint) => ComputeBudgetProgram.setComputeUnitPrice({ microLamports });
const isBudget = ({ programId }: TransactionInstruction) => programId.equals(ComputeBudgetProgram.programId);
const newBudget = (...budget: TransactionInstruction[]) => ({
  instructions: (ours: TransactionInstruction[]) => [...budget, ...ours.filter((one) => !isBudget(one))],
});

describe("a signed transaction", () => {
  test.each<[string, () => WalletChange | Promise<WalletChange>]>([
    ["unchanged", () => ({})],
    ["as a legacy transaction", () => ({ legacy: true })],
    [
      "with the wallet's own blockhash",
      async () => ({ blockhash: (await solana.client.connection.getLatestBlockhash()).blockhash }),
    ],
    ["with the wallet's own compute budget, under the cap", () => newBudget(price(100_000n), limit(400_000))],
    ["without a compute budget", () => newBudget()],
    ["with a compute unit price and no limit", () => newBudget(price(1_000n))],
  ])("a signed transaction %s pays, and its fee is booked to the lamport", async (_, change) => {
    const begun = await begin();
    const held = await treasuryBalance();
    const before = await solana.client.connection.getBalance(key(relayer.address), "confirmed");
    expect(await confirmAndVerify(begun, signChanged(begun.transaction, begun.buyer, await change()))).toBe("verified");
    await finishPayment(begun.paymentId);
    expect((await treasuryBalance()) - held).toBe(1_000_000n);
    await fixture.watchUntil(async () => (await rowsOf(begun.paymentId)).transactions[0]?.state === "final");
    const after = await solana.client.connection.getBalance(key(relayer.address), "confirmed");
    expect((await rowsOf(begun.paymentId)).transactions.map(({ fee }) => fee)).toEqual([BigInt(before - after)]);
  });

  const fromRelayer = (lamports: number) =>
    SystemProgram.transfer({ fromPubkey: key(relayer.address), toPubkey: key(stranger.address), lamports });
  const tokensOf = (owner: string) => key(tokenAccountOf(solana.mint, owner));
  const mint = key(solana.mint.address);
  const pay = (buyer: SolanaKey, to: string, amount: bigint) =>
    createTransferCheckedInstruction(
      tokensOf(buyer.address),
      mint,
      tokensOf(to),
      key(buyer.address),
      amount,
      solana.mint.decimals,
    );
  const isTransfer = ({ data, programId }: TransactionInstruction) =>
    programId.toBase58() === solana.mint.program && data[0] === 12;
  const memo = (text: string) =>
    new TransactionInstruction({ programId: key(MEMO_PROGRAM), keys: [], data: Buffer.from(text) });
  const added = (...more: TransactionInstruction[]) => ({
    instructions: (ours: TransactionInstruction[]) => [...ours, ...more],
  });
  const instead = (transfer: TransactionInstruction) => ({
    instructions: (ours: TransactionInstruction[]) => ours.map((one) => (isTransfer(one) ? transfer : one)),
  });

  test.each<[string, string, (buyer: SolanaKey) => WalletChange]>([
    ["that moves the relayer's SOL", "Transfer of the System program", () => added(fromRelayer(1_000))],
    [
      "that first moves the relayer's SOL",
      "Transfer of the System program",
      () => ({ instructions: (ours) => [fromRelayer(1), ...ours] }),
    ],
    [
      "that makes an account at the relayer's expense",
      "CreateAccount of the System program",
      () => {
        const newAccountPubkey = key(stranger.address);
        const space = { lamports: 1_000_000, space: 0, programId: SystemProgram.programId };
        const made = SystemProgram.createAccount({ fromPubkey: key(relayer.address), newAccountPubkey, ...space });
        return { ...added(made), signers: [] };
      },
    ],
    [
      "that makes a token account at the relayer's expense",
      "token account",
      ({ address }) =>
        added(
          createAssociatedTokenAccountInstruction(
            key(relayer.address),
            key(tokenAccountOf(otherMint, address)),
            key(address),
            key(otherMint.address),
          ),
        ),
    ],
    [
      "that closes the buyer's account behind the transfer",
      "CloseAccount",
      ({ address }) => added(createCloseAccountInstruction(tokensOf(address), key(address), key(address))),
    ],
    [
      "that approves a third party for the relayer's tokens",
      "Approve",
      () => added(createApproveInstruction(tokensOf(relayer.address), key(stranger.address), key(relayer.address), 1n)),
    ],
    [
      "that withdraws from a nonce account with the relayer's authority",
      "WithdrawNonceAccount",
      () =>
        added(
          SystemProgram.nonceWithdraw({
            noncePubkey: key(stranger.address),
            authorizedPubkey: key(relayer.address),
            toPubkey: key(stranger.address),
            lamports: 1,
          }),
        ),
    ],
    [
      "on a durable nonce, which would never expire",
      "AdvanceNonceAccount",
      ({ address }) => ({
        instructions: (ours) => [
          SystemProgram.nonceAdvance({ noncePubkey: key(stranger.address), authorizedPubkey: key(address) }),
          ...ours,
        ],
      }),
    ],
    ["for one unit less", "moves 999999", (buyer) => instead(pay(buyer, fixture.keys.treasury.address, 999_999n))],
    ["to another receiver", "destination", (buyer) => instead(pay(buyer, stranger.address, 1_000_000n))],
    ["with a second transfer", "there are 2", (buyer) => added(pay(buyer, stranger.address, 1n))],
    ["with another memo", "memo", () => ({ instructions: (ours) => [...ours.slice(0, -1), memo("0xabcd")] })],
    ["without a memo", "memo", () => ({ instructions: (ours) => ours.slice(0, -1) })],
    ["with a priority fee above the cap", "above the 100000", () => newBudget(limit(1_400_000), price(10n ** 6n))],
    ["whose fee the buyer pays", "is not ours", (buyer) => ({ feePayer: buyer.address })],
    ["without a signature", "missing", () => ({ signers: [] })],
    ["without instructions", "there are 0", () => ({ instructions: () => [], signers: [] })],
  ])("a transaction %s is refused with the reason and is never signed by the relayer", async (_, reason, change) => {
    const begun = await begin();
    const signed = signChanged(begun.transaction, begun.buyer, change(begun.buyer));
    expect(await confirmAndVerify(begun, signed)).toEqual({ refused: expect.stringContaining(reason) });
    await fixture.submit();
    await expectUntouched(begun.paymentId);
  });

  test("a transaction with a lookup table is refused", async () => {
    const begun = await begin();
    const { message } = VersionedTransaction.deserialize(Buffer.from(begun.transaction, "base64"));
    const { payerKey, recentBlockhash, instructions } = TransactionMessage.decompile(message);
    const addresses = [key(tokenAccountOf(solana.mint, fixture.keys.treasury.address))];
    const state = { deactivationSlot: 2n ** 64n - 1n, lastExtendedSlot: 0, lastExtendedSlotStartIndex: 0, addresses };
    const table = new AddressLookupTableAccount({ key: key(stranger.address), state });
    const compiled = new TransactionMessage({ payerKey, recentBlockhash, instructions }).compileToV0Message([table]);
    const signed = new VersionedTransaction(compiled);
    signed.sign([keypairOf(begun.buyer)]);
    const result = await confirmAndVerify(begun, Buffer.from(signed.serialize()).toString("base64"));
    expect(result).toEqual({ refused: expect.stringContaining("lookup tables") });
    await expectUntouched(begun.paymentId);
  });

  test("a transaction with a forged signature is refused, and the buyer's own signature still pays", async () => {
    const begun = await begin();
    const { buyer, transaction } = begun;
    const forged = Buffer.from(signAsWallet(transaction, buyer), "base64");
    forged[70] = (forged[70] ?? 0) ^ 1;
    expect(await confirmAndVerify(begun, forged.toString("base64"))).toEqual({
      refused: expect.stringContaining("is invalid"),
    });
    await expectUntouched(begun.paymentId);
    expect(await confirmAndVerify(begun, signAsWallet(transaction, buyer))).toBe("verified");
    await finishPayment(begun.paymentId);
  });

  test("a transaction with a forged relayer signature is refused", async () => {
    const begun = await begin();
    const bytes = Buffer.from(signAsWallet(begun.transaction, begun.buyer), "base64");
    bytes.fill(7, 1, 65);
    expect(await confirmAndVerify(begun, bytes.toString("base64"))).toEqual({
      refused: expect.stringContaining(`the signature of ${relayer.address} is invalid`),
    });
  });
});

describe("a malformed wallet result", () => {
  const bytesOf = (base64: string) => Buffer.from(base64, "base64");
  test.each<[string, string, (signed: string) => unknown[]]>([
    [
      "a detached signature in base64",
      "a signature alone",
      (signed) => [bytesOf(signed).subarray(65, 129).toString("base64")],
    ],
    [
      "a detached signature in base58",
      "a signature in base58",
      (signed) => [base58.encode(bytesOf(signed).subarray(65, 129))],
    ],
    ["hex", "hex", (signed) => [bytesOf(signed).toString("hex")]],
    ["hex with a 0x prefix", "hex", (signed) => [`0x${bytesOf(signed).toString("hex")}`]],
    ["base58", "base58", (signed) => [base58.encode(bytesOf(signed))]],
    ["10 kB of garbage", "longer than", () => ["x/+9".repeat(2_560)]],
    ["an empty string", "empty", () => [""]],
    ["blanks", "empty", () => ["   "]],
    ["prose", "not base64", () => ["signed, thank you"]],
    ["an object", "expected the signed transaction", (signed) => [{ transaction: signed }]],
    ["no element", "one element", () => []],
    ["two elements", "one element", (signed) => [signed, signed]],
  ])(
    "a wallet result of %s is refused immediately with an explanation for the wallet's developer",
    async (_, explanation, data) => {
      const begun = await begin();
      const answer = await confirm(begun, ...data(signAsWallet(begun.transaction, begun.buyer)));
      expect(answer).toMatchObject({
        ok: false,
        code: "invalid_params",
        message: expect.stringContaining(explanation),
      });
      await expectUntouched(begun.paymentId);
    },
  );

  test("a truncated transaction is refused without an exception", async () => {
    const begun = await begin();
    const bytes = bytesOf(signAsWallet(begun.transaction, begun.buyer));
    for (const length of [1, 65, 66, 130, 131, 200, bytes.length - 1]) {
      const answer = await confirm(begun, bytes.subarray(0, length).toString("base64"));
      if (!answer.ok) continue;
      await fixture.verify(answer.value.attemptId ?? "");
      expect(await fixture.verificationResult(answer.value.attemptId ?? "")).toEqual({
        refused: expect.stringMatching(/\w/),
      });
    }
    await expectUntouched(begun.paymentId);
  });
});
