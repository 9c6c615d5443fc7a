import { createAssociatedTokenAccountIdempotentInstruction, createMintToInstruction } from "@solana/spl-token";
import { NonceAccount, PublicKey, SystemProgram } from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readTokenAccount } from "../../../../chains/solana/mints.ts";
import {
  buildTransaction,
  findTokenAccount,
  type TokenProgram,
  tokenPrograms,
} from "../../../../chains/solana/payment.ts";
import {
  buildPayouts,
  countUnits,
  type Payout,
  type PayoutArgs,
  takeFitting,
} from "../../../../chains/solana/payouts.ts";
import { parseTransaction } from "../../../../chains/solana/transactions.ts";
import { openBank } from "./bank.ts";
import { makeAddress, makeSigner, mint } from "./made.ts";

const key = (address: string) => new PublicKey(address);
const [relayer, treasury, nonceAccount] = [makeSigner(), makeSigner(), makeSigner()];
const payout = (otherwise: Partial<Payout> = {}): Payout => ({
  destination: makeAddress(),
  amount: 3n,
  memo: "stl_0123456789abcdef",
  makeAccount: false,
  ...otherwise,
});
const args: Omit<PayoutArgs, "payouts"> = {
  feePayer: relayer.address,
  treasury: treasury.address,
  mint,
  program: "token",
  decimals: 6,
  nonceAccount: nonceAccount.address,
  nonceAuthority: relayer.address,
  nonce: makeAddress(),
  budget: { units: 1_400_000, unitPrice: 1_000n },
};

/** The real programs with a treasury of a thousand and a nonce account of our relayer. */
async function openTreasury(program: TokenProgram) {
  const bank = openBank();
  const account = findTokenAccount(treasury.address, mint, program);
  bank.giveSol(relayer.address);
  bank.makeMint(mint, treasury.address, 6, program);
  const [us, owner, mintKey, programKey] = [relayer.address, treasury.address, mint, tokenPrograms[program]].map(
    (one) => new PublicKey(one),
  );
  if (!us || !owner || !mintKey || !programKey) throw new Error("no keys");
  const nonce = { fromPubkey: us, noncePubkey: key(nonceAccount.address), authorizedPubkey: us, lamports: 2_000_000 };
  const steps = [
    createAssociatedTokenAccountIdempotentInstruction(us, key(account), owner, mintKey, programKey),
    createMintToInstruction(mintKey, key(account), owner, 1_000n, [], programKey),
    ...SystemProgram.createNonceAccount(nonce).instructions,
  ];
  await bank.land(buildTransaction(relayer.address, steps, bank.blockhash()), relayer, treasury, nonceAccount);
  return {
    ...bank,
    readNonce: () => NonceAccount.fromAccountData(bank.read(nonceAccount.address)?.data ?? []).nonce,
    held: (owner: string) => {
      const state = bank.read(findTokenAccount(owner, mint, program));
      return state && readTokenAccount(state.data)?.amount;
    },
  };
}

describe.each(["token", "token-2022"] as const)("payouts on %s", (program) => {
  test("reach several destinations in one transaction, accounts made where they are missing", async () => {
    const bank = await openTreasury(program);
    const payouts = [payout({ makeAccount: true }), payout({ amount: 7n, memo: "é", makeAccount: true })];
    const bytes = buildPayouts({ ...args, program, payouts, nonce: bank.readNonce() });
    const landed = await bank.land(bytes, relayer, treasury);
    expect(landed.meta?.err).toBeNull();
    expect(payouts.map((one) => bank.held(one.destination))).toEqual([3n, 7n]);
    expect(bank.held(treasury.address)).toBe(990n);
    expect(landed.meta?.computeUnitsConsumed).toBeLessThan(countUnits(payouts, program));
  });

  test("signed a second time on the same nonce, whatever they pay, are taken by no block", async () => {
    const bank = await openTreasury(program);
    const nonce = bank.readNonce();
    const first = payout({ makeAccount: true });
    const build = (payouts: Payout[]) => buildPayouts({ ...args, program, payouts, nonce });
    await bank.land(build([first]), relayer, treasury);
    await expect(bank.land(build([first]), relayer, treasury)).rejects.toThrow("no block takes");
    const again = { ...first, amount: 4n, makeAccount: false };
    await expect(bank.land(build([again]), relayer, treasury)).rejects.toThrow("no block takes");
    expect(bank.held(first.destination)).toBe(3n);
    expect(bank.readNonce()).not.toBe(nonce);
  });

  test("do not die with their blockhash, which they have none of", async () => {
    const bank = await openTreasury(program);
    const one = payout({ makeAccount: true });
    const bytes = buildPayouts({ ...args, program, payouts: [one], nonce: bank.readNonce() });
    bank.ledger.advance(400);
    expect((await bank.land(bytes, relayer, treasury)).meta?.err).toBeNull();
    expect(bank.held(one.destination)).toBe(3n);
  });

  test("one of which fails pay nobody", async () => {
    const bank = await openTreasury(program);
    const payouts = [payout({ makeAccount: true }), payout({ makeAccount: true, amount: 1_001n })];
    const bytes = buildPayouts({ ...args, program, payouts, nonce: bank.readNonce() });
    expect((await bank.land(bytes, relayer, treasury)).meta?.err).not.toBeNull();
    expect(bank.held(treasury.address)).toBe(1_000n);
    expect(payouts.map((one) => bank.held(one.destination))).toEqual([undefined, undefined]);
  });
});

/** Whether the network takes a transaction of so many bytes. */
const fits = (payouts: Payout[]) => {
  try {
    return buildPayouts({ ...args, payouts }).length <= 1232;
  } catch (error) {
    // The library has no room for a message that is too long.
    if (error instanceof RangeError) return false;
    throw error;
  }
};

describe("a transaction of payouts", () => {
  test("advances the nonce first and is signed by fee payer, treasury and the nonce's authority", () => {
    const parsed = parseTransaction(buildPayouts({ ...args, payouts: [payout()] }));
    if ("fault" in parsed) throw new Error(parsed.fault);
    expect(parsed.instructions[0]).toMatchObject({
      program: SystemProgram.programId.toBase58(),
      data: Uint8Array.from([4, 0, 0, 0]),
    });
    expect(parsed.blockhash).toBe(args.nonce);
    expect(parsed.feePayer).toBe(relayer.address);
    expect(new Set(parsed.signers)).toEqual(new Set([relayer.address, treasury.address]));
    const authority = makeAddress();
    const other = parseTransaction(buildPayouts({ ...args, payouts: [payout()], nonceAuthority: authority }));
    expect("fault" in other ? other.fault : other.signers).toContain(authority);
  });

  test("is the same for the same arguments", () => {
    const payouts = [payout(), payout({ makeAccount: true })];
    expect(buildPayouts({ ...args, payouts })).toEqual(buildPayouts({ ...args, payouts }));
  });

  test("takes as many as fit into its bytes and not one more", () => {
    const some = fc.record({
      destination: fc.constant("").map(() => makeAddress()),
      amount: fc.bigInt({ min: 1n, max: 2n ** 64n - 1n }),
      memo: fc.string({ maxLength: 200 }),
      makeAccount: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(some, { minLength: 12, maxLength: 14 }), (payouts) => {
        const count = takeFitting(payouts, args);
        expect(count).toBeGreaterThan(0);
        expect(fits(payouts.slice(0, count))).toBe(true);
        expect(fits(payouts.slice(0, count + 1))).toBe(false);
      }),
      { numRuns: 40 },
    );
  });

  test("is filled to the last byte", () => {
    const one = payout();
    const lengths = Array.from({ length: 100 }, (_, more) => 600 + more);
    const taken = lengths.map((length) => takeFitting([{ ...one, memo: "x".repeat(length) }], args) === 1);
    expect(taken).toEqual(lengths.map((length) => fits([{ ...one, memo: "x".repeat(length) }])));
    expect(new Set(taken).size).toBe(2);
  });

  test("takes no more than the budget's units allow", () => {
    const payouts = Array.from({ length: 5 }, () => payout({ makeAccount: true }));
    const units = countUnits(payouts.slice(0, 3), "token");
    expect(takeFitting(payouts, { ...args, budget: { units, unitPrice: 1n } })).toBe(3);
    expect(takeFitting(payouts, { ...args, budget: { units: units - 1, unitPrice: 1n } })).toBe(2);
    expect(takeFitting(payouts, { ...args, budget: { units: 10, unitPrice: 1n } })).toBe(0);
  });

  test("takes all there are when they are few, and none of none", () => {
    expect(takeFitting([payout(), payout()], args)).toBe(2);
    expect(takeFitting([], args)).toBe(0);
  });
});
