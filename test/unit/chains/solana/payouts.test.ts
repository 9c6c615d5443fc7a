import { createAssociatedTokenAccountIdempotentInstruction, createMintToInstruction } from "@solana/spl-token";
import { NonceAccount, PublicKey, SystemProgram } from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CLOSED_TOGETHER, closeMarkers, findMarker } from "../../../../chains/solana/markers.ts";
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
/** What an account of 80 bytes has to hold on mainnet, lamports. */
const markerRent = 1_447_680n;
let made = 0;
const payout = (otherwise: Partial<Payout> = {}): Payout => ({
  destination: makeAddress(),
  amount: 3n,
  memo: `stl_${String(made++).padStart(16, "0")}`,
  makeAccount: false,
  ...otherwise,
});
const args: Omit<PayoutArgs, "payouts"> = {
  feePayer: relayer.address,
  treasury: treasury.address,
  mint,
  program: "token",
  decimals: 6,
  markerRent,
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

describe("a payout's marker", () => {
  /** The same number again, on the nonce as it is now. */
  const land = async (bank: Awaited<ReturnType<typeof openTreasury>>, ...payouts: Payout[]) => {
    const landed = await bank.land(buildPayouts({ ...args, payouts, nonce: bank.readNonce() }), relayer, treasury);
    return landed.meta?.err ?? undefined;
  };
  const close = async (bank: Awaited<ReturnType<typeof openTreasury>>, address: string, authority = treasury) => {
    const markers = [{ address, lamports: bank.read(address)?.lamports ?? 0n }];
    const frame = { feePayer: relayer.address, treasury: authority.address, markers, blockhash: bank.blockhash() };
    return (await bank.land(closeMarkers(frame), relayer, authority)).meta?.err ?? undefined;
  };

  test("is where the library says that an account with its seed is", async () => {
    const { address, seed } = findMarker(treasury.address, "stl_1");
    expect(seed).toHaveLength(22);
    const found = await PublicKey.createWithSeed(key(treasury.address), seed, SystemProgram.programId);
    expect(address).toBe(found.toBase58());
    expect(findMarker(treasury.address, "stl_2").address).not.toBe(address);
    expect(findMarker(relayer.address, "stl_1").address).not.toBe(address);
  });

  test("refuses a second payout with its number, whatever the nonce, the amount and the destination", async () => {
    const bank = await openTreasury("token");
    const first = payout({ makeAccount: true });
    expect(await land(bank, first)).toBeUndefined();
    expect(await land(bank, { ...first, makeAccount: false })).toBeDefined();
    const other = payout({ memo: first.memo, amount: 4n, makeAccount: true });
    expect(await land(bank, other)).toBeDefined();
    expect([bank.held(first.destination), bank.held(other.destination)]).toEqual([3n, undefined]);
    expect(await land(bank, payout({ destination: first.destination }))).toBeUndefined();
    expect(bank.held(first.destination)).toBe(6n);
  });

  test("is made although a stranger has sent lamports to its address, and refuses a second payout then too", async () => {
    const bank = await openTreasury("token");
    const first = payout({ makeAccount: true });
    const { address } = findMarker(treasury.address, first.memo);
    bank.giveSol(address, 5_000_000n);
    expect(await land(bank, first)).toBeUndefined();
    expect(await land(bank, { ...first, makeAccount: false })).toBeDefined();
    expect(bank.held(first.destination)).toBe(3n);
    expect(bank.read(address)?.lamports).toBe(5_000_000n + markerRent);
  });

  test("is closed by the treasury alone, gives back all it holds, and its number can be paid again then", async () => {
    const bank = await openTreasury("token");
    const first = payout({ makeAccount: true });
    await land(bank, first);
    const { address } = findMarker(treasury.address, first.memo);
    expect(await close(bank, address, makeSigner())).toBeDefined();
    const before = bank.read(relayer.address)?.lamports ?? 0n;
    expect(await close(bank, address)).toBeUndefined();
    expect(bank.read(address)).toBeUndefined();
    expect((bank.read(relayer.address)?.lamports ?? 0n) - before).toBe(markerRent - 10_000n);
    expect(await land(bank, { ...first, makeAccount: false })).toBeUndefined();
  });

  test("costs so many bytes that two payouts fit, and twelve markers are closed by one transaction", () => {
    const number = `0x${"0".repeat(64)}`;
    const payouts = Array.from({ length: 5 }, () => payout({ memo: number }));
    expect(takeFitting(payouts, args)).toBe(2);
    const markers = Array.from({ length: CLOSED_TOGETHER }, () => ({ address: makeAddress(), lamports: 1n }));
    const frame = { feePayer: relayer.address, treasury: treasury.address, blockhash: makeAddress() };
    expect(closeMarkers({ ...frame, markers }).length).toBeLessThanOrEqual(1232);
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
      memo: fc.string({ maxLength: 150 }),
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
    const lengths = Array.from({ length: 100 }, (_, more) => 380 + more);
    const taken = lengths.map((length) => takeFitting([{ ...one, memo: "x".repeat(length) }], args) === 1);
    expect(taken).toEqual(lengths.map((length) => fits([{ ...one, memo: "x".repeat(length) }])));
    expect(new Set(taken).size).toBe(2);
  });

  test("takes no more than the budget's units allow", () => {
    const payouts = Array.from({ length: 5 }, () => payout());
    const units = countUnits(payouts.slice(0, 2), "token");
    expect(takeFitting(payouts, { ...args, budget: { units, unitPrice: 1n } })).toBe(2);
    expect(takeFitting(payouts, { ...args, budget: { units: units - 1, unitPrice: 1n } })).toBe(1);
    expect(takeFitting(payouts, { ...args, budget: { units: 10, unitPrice: 1n } })).toBe(0);
  });

  test("takes all there are when they are few, and none of none", () => {
    expect(takeFitting([payout(), payout()], args)).toBe(2);
    expect(takeFitting([], args)).toBe(0);
  });
});
