import { createAssociatedTokenAccountIdempotentInstruction, createMintToInstruction } from "@solana/spl-token";
import { NonceAccount, PublicKey, SystemProgram } from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  buildTransaction,
  findTokenAccount,
  type TokenProgram,
  tokenPrograms,
} from "../../../../chains/solana/build-payment.ts";
import {
  buildPayouts,
  countFitting,
  countUnits,
  type Payout,
  type PayoutArgs,
} from "../../../../chains/solana/build-payouts.ts";
import { readTokenAccount } from "../../../../chains/solana/mints.ts";
import { closeMarkers, findMarker, MAX_MARKERS_PER_CLOSE } from "../../../../chains/solana/payout-markers.ts";
import { parseTransaction } from "../../../../chains/solana/wire-format.ts";
import { openBank } from "./in-process-bank.ts";
import { makeAddress, makeSigner, mint } from "./solana-fixtures.ts";

const key = (address: string) => new PublicKey(address);
const [relayer, treasury, nonceAccount] = [makeSigner(), makeSigner(), makeSigner()];
/** Rent of an account of 80 bytes on mainnet, in lamports. */
const markerRent = 1_447_680n;
let payoutCount = 0;
const payout = (changes: Partial<Payout> = {}): Payout => ({
  destination: makeAddress(),
  amount: 3n,
  memo: `stl_${String(payoutCount++).padStart(16, "0")}`,
  makeAccount: false,
  ...changes,
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

/** Opens a ledger with the real programs, a treasury of 1,000 units, and a nonce account of our relayer. */
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
  test("reach several destinations in one transaction, which creates missing token accounts", async () => {
    const bank = await openTreasury(program);
    const payouts = [payout({ makeAccount: true }), payout({ amount: 7n, memo: "é", makeAccount: true })];
    const bytes = buildPayouts({ ...args, program, payouts, nonce: bank.readNonce() });
    const landed = await bank.land(bytes, relayer, treasury);
    expect(landed.meta?.err).toBeNull();
    expect(payouts.map((one) => bank.held(one.destination))).toEqual([3n, 7n]);
    expect(bank.held(treasury.address)).toBe(990n);
    expect(landed.meta?.computeUnitsConsumed).toBeLessThan(countUnits(payouts, program));
  });

  test("payouts that are signed again with the same nonce are refused, whatever they pay", async () => {
    const bank = await openTreasury(program);
    const nonce = bank.readNonce();
    const first = payout({ makeAccount: true });
    const build = (payouts: Payout[]) => buildPayouts({ ...args, program, payouts, nonce });
    await bank.land(build([first]), relayer, treasury);
    await expect(bank.land(build([first]), relayer, treasury)).rejects.toThrow("the ledger refused");
    const second = { ...first, amount: 4n, makeAccount: false };
    await expect(bank.land(build([second]), relayer, treasury)).rejects.toThrow("the ledger refused");
    expect(bank.held(first.destination)).toBe(3n);
    expect(bank.readNonce()).not.toBe(nonce);
  });

  test("payouts do not expire, because they use a nonce instead of a blockhash", async () => {
    const bank = await openTreasury(program);
    const one = payout({ makeAccount: true });
    const bytes = buildPayouts({ ...args, program, payouts: [one], nonce: bank.readNonce() });
    bank.ledger.advance(400);
    expect((await bank.land(bytes, relayer, treasury)).meta?.err).toBeNull();
    expect(bank.held(one.destination)).toBe(3n);
  });

  test("payouts pay nothing if one of them fails", async () => {
    const bank = await openTreasury(program);
    const payouts = [payout({ makeAccount: true }), payout({ makeAccount: true, amount: 1_001n })];
    const bytes = buildPayouts({ ...args, program, payouts, nonce: bank.readNonce() });
    expect((await bank.land(bytes, relayer, treasury)).meta?.err).not.toBeNull();
    expect(bank.held(treasury.address)).toBe(1_000n);
    expect(payouts.map((one) => bank.held(one.destination))).toEqual([undefined, undefined]);
  });
});

describe("a payout's marker", () => {
  /** Makes payouts with the current nonce and returns the transaction's error. */
  const land = async (bank: Awaited<ReturnType<typeof openTreasury>>, ...payouts: Payout[]) => {
    const landed = await bank.land(buildPayouts({ ...args, payouts, nonce: bank.readNonce() }), relayer, treasury);
    return landed.meta?.err ?? undefined;
  };
  const close = async (bank: Awaited<ReturnType<typeof openTreasury>>, address: string, authority = treasury) => {
    const markers = [{ address, lamports: bank.read(address)?.lamports ?? 0n }];
    const request = { feePayer: relayer.address, treasury: authority.address, markers, blockhash: bank.blockhash() };
    return (await bank.land(closeMarkers(request), relayer, authority)).meta?.err ?? undefined;
  };

  test("a payout's marker has the address that web3.js derives from its seed", async () => {
    const { address, seed } = findMarker(treasury.address, "stl_1");
    expect(seed).toHaveLength(22);
    const found = await PublicKey.createWithSeed(key(treasury.address), seed, SystemProgram.programId);
    expect(address).toBe(found.toBase58());
    expect(findMarker(treasury.address, "stl_2").address).not.toBe(address);
    expect(findMarker(relayer.address, "stl_1").address).not.toBe(address);
  });

  test("prevents a second payout with its memo, whatever the durable nonce, the amount and the destination", async () => {
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

  test("a payout's marker is created at an address that already has lamports, and prevents a second payout there too", async () => {
    const bank = await openTreasury("token");
    const first = payout({ makeAccount: true });
    const { address } = findMarker(treasury.address, first.memo);
    bank.giveSol(address, 5_000_000n);
    expect(await land(bank, first)).toBeUndefined();
    expect(await land(bank, { ...first, makeAccount: false })).toBeDefined();
    expect(bank.held(first.destination)).toBe(3n);
    expect(bank.read(address)?.lamports).toBe(5_000_000n + markerRent);
  });

  test("a payout's marker can be closed by the treasury only, returns all its lamports, and no longer prevents a payout then", async () => {
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

  test("a payout's marker leaves room for two payouts per transaction, and one transaction closes twelve markers", () => {
    const memo = `0x${"0".repeat(64)}`;
    const payouts = Array.from({ length: 5 }, () => payout({ memo }));
    expect(countFitting(payouts, args)).toBe(2);
    const markers = Array.from({ length: MAX_MARKERS_PER_CLOSE }, () => ({ address: makeAddress(), lamports: 1n }));
    const request = { feePayer: relayer.address, treasury: treasury.address, blockhash: makeAddress() };
    expect(closeMarkers({ ...request, markers }).length).toBeLessThanOrEqual(1232);
  });
});

/** Returns true if a transaction of these payouts has at most 1232 bytes. */
const fits = (payouts: Payout[]) => {
  try {
    return buildPayouts({ ...args, payouts }).length <= 1232;
  } catch (error) {
    // web3.js throws for a message that exceeds its buffer.
    if (error instanceof RangeError) return false;
    throw error;
  }
};

describe("a transaction of payouts", () => {
  test("advances the nonce first, and requires the signatures of fee payer, treasury and nonce authority", () => {
    const parsed = parseTransaction(buildPayouts({ ...args, payouts: [payout()] }));
    if ("error" in parsed) throw new Error(parsed.error);
    expect(parsed.instructions[0]).toMatchObject({
      program: SystemProgram.programId.toBase58(),
      data: Uint8Array.from([4, 0, 0, 0]),
    });
    expect(parsed.blockhash).toBe(args.nonce);
    expect(parsed.feePayer).toBe(relayer.address);
    expect(new Set(parsed.signers)).toEqual(new Set([relayer.address, treasury.address]));
    const authority = makeAddress();
    const other = parseTransaction(buildPayouts({ ...args, payouts: [payout()], nonceAuthority: authority }));
    expect("error" in other ? other.error : other.signers).toContain(authority);
  });

  test("a transaction of payouts is deterministic", () => {
    const payouts = [payout(), payout({ makeAccount: true })];
    expect(buildPayouts({ ...args, payouts })).toEqual(buildPayouts({ ...args, payouts }));
  });

  test("contains as many payouts as fit into its bytes, and not one more", () => {
    const some = fc.record({
      destination: fc.constant("").map(() => makeAddress()),
      amount: fc.bigInt({ min: 1n, max: 2n ** 64n - 1n }),
      memo: fc.string({ maxLength: 150 }),
      makeAccount: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(some, { minLength: 12, maxLength: 14 }), (payouts) => {
        const count = countFitting(payouts, args);
        expect(count).toBeGreaterThan(0);
        expect(fits(payouts.slice(0, count))).toBe(true);
        expect(fits(payouts.slice(0, count + 1))).toBe(false);
      }),
      { numRuns: 40 },
    );
  });

  test("a transaction of payouts may use every byte of the size limit", () => {
    const one = payout();
    const lengths = Array.from({ length: 100 }, (_, more) => 380 + more);
    const accepted = lengths.map((length) => countFitting([{ ...one, memo: "x".repeat(length) }], args) === 1);
    expect(accepted).toEqual(lengths.map((length) => fits([{ ...one, memo: "x".repeat(length) }])));
    expect(new Set(accepted).size).toBe(2);
  });

  test("contains no more payouts than the budget's compute units allow", () => {
    const payouts = Array.from({ length: 5 }, () => payout());
    const units = countUnits(payouts.slice(0, 2), "token");
    expect(countFitting(payouts, { ...args, budget: { units, unitPrice: 1n } })).toBe(2);
    expect(countFitting(payouts, { ...args, budget: { units: units - 1, unitPrice: 1n } })).toBe(1);
    expect(countFitting(payouts, { ...args, budget: { units: 10, unitPrice: 1n } })).toBe(0);
  });

  test("contains all payouts if they are few, and none if there are none", () => {
    expect(countFitting([payout(), payout()], args)).toBe(2);
    expect(countFitting([], args)).toBe(0);
  });
});
