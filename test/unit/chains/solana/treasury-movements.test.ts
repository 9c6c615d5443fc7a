import {
  AuthorityType,
  createApproveInstruction,
  createAssociatedTokenAccountIdempotentInstruction,
  createBurnCheckedInstruction,
  createBurnInstruction,
  createInitializeMintInstruction,
  createInitializeTransferFeeConfigInstruction,
  createMintToCheckedInstruction,
  createMintToInstruction,
  createRecoverNestedInstruction,
  createSetAuthorityInstruction,
  createSyncNativeInstruction,
  createTransferCheckedInstruction,
  createTransferCheckedWithFeeInstruction,
  createTransferInstruction,
  ExtensionType,
  getMintLen,
  NATIVE_MINT,
} from "@solana/spl-token";
import {
  AddressLookupTableAccount,
  AddressLookupTableProgram,
  PublicKey,
  SystemProgram,
  TransactionInstruction,
  TransactionMessage,
} from "@solana/web3.js";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import {
  buildPayment,
  buildTransaction,
  findTokenAccount,
  MEMO_PROGRAM,
  MEMO_PROGRAM_1,
  type TokenProgram,
  tokenPrograms,
} from "../../../../chains/solana/build-payment.ts";
import { readMovements, type Treasury } from "../../../../chains/solana/treasury-movements.ts";
import { encodeUnsigned } from "../../../../chains/solana/wire-format.ts";
import { openBank } from "./in-process-bank.ts";
import { budget, buyer, makeAddress, makeSigner, makeTransfer, relayer } from "./solana-fixtures.ts";

const key = (address: string) => new PublicKey(address);
const owner = makeSigner();
const [mint, mint2022, merchant] = [makeAddress(), makeAddress(), makeAddress()];
const account = (of: string, program: TokenProgram = "token") =>
  findTokenAccount(of, program === "token" ? mint : mint2022, program);
const treasury: Treasury = {
  owner: owner.address,
  accounts: new Map([
    [account(owner.address), mint],
    [account(owner.address, "token-2022"), mint2022],
    [findTokenAccount(owner.address, NATIVE_MINT.toBase58(), "token"), NATIVE_MINT.toBase58()],
  ]),
};
const memo = (text: string, program = MEMO_PROGRAM) =>
  new TransactionInstruction({ programId: key(program), keys: [], data: Buffer.from(text) });
const open = (of: string, token = mint, program: TokenProgram = "token") =>
  createAssociatedTokenAccountIdempotentInstruction(
    key(relayer.address),
    key(findTokenAccount(of, token, program)),
    key(of),
    key(token),
    tokenPrograms[program],
  );
const move = (from: string, to: string, amount: bigint) =>
  createTransferCheckedInstruction(key(account(from)), key(mint), key(account(to)), key(from), amount, 6);
/** Gives a token account to another owner, who does not sign. */
const give = (from: string, to: string) =>
  createSetAuthorityInstruction(key(account(from)), key(from), AuthorityType.AccountOwner, key(to));
/** Recovers tokens that were sent to the associated account of the treasury's own token account. */
const recover = () => {
  const [nested, own] = [key(account(account(owner.address))), key(account(owner.address))];
  return createRecoverNestedInstruction(nested, key(mint), own, own, key(mint), key(owner.address));
};

let bank: ReturnType<typeof openBank>;

/** Runs instructions on the real programs, signed by all signers that they name, and returns the result of web3.js. */
async function run(...instructions: TransactionInstruction[]) {
  const named = new Set(
    instructions.flatMap((one) => one.keys.filter((it) => it.isSigner).map((it) => it.pubkey.toBase58())),
  );
  const signers = [relayer, owner, buyer].filter((one) => one === relayer || named.has(one.address));
  return bank.land(buildTransaction(relayer.address, instructions, bank.blockhash()), ...signers);
}

const movementsOf = async (...instructions: TransactionInstruction[]) =>
  readMovements(await run(...instructions), treasury);

beforeEach(async () => {
  bank = openBank();
  bank.giveSol(relayer.address);
  bank.giveSol(buyer.address);
  bank.makeMint(mint, owner.address, 6);
  bank.makeMint(mint2022, owner.address, 6, "token-2022");
  for (const one of [owner.address, buyer.address, merchant]) await run(open(one), open(one, mint2022, "token-2022"));
  await run(
    createMintToInstruction(key(mint), key(account(owner.address)), key(owner.address), 1_000n),
    createMintToInstruction(key(mint), key(account(buyer.address)), key(owner.address), 1_000n),
  );
});

describe("an incoming movement", () => {
  test("an incoming movement of a payment that we built has its payer, amount and memo", async () => {
    const transfer = makeTransfer({ mint, receiver: owner.address, amount: 12n });
    const landed = await bank.land(buildPayment(transfer, budget, bank.blockhash()), relayer, buyer);
    expect(readMovements(landed, treasury)).toEqual([
      { mint, payer: buyer.address, receiver: owner.address, amount: 12n, memo: transfer.memo, index: 2 * 256 },
    ]);
  });

  test("into an account that the same transaction created is read", async () => {
    const fresh = makeSigner();
    const accounts = new Map([[account(fresh.address), mint]]);
    const transfer = makeTransfer({ mint, receiver: fresh.address, amount: 5n, makeReceiverAccount: true });
    const landed = await bank.land(buildPayment(transfer, budget, bank.blockhash()), relayer, buyer);
    expect(readMovements(landed, { owner: fresh.address, accounts })).toMatchObject([
      { payer: buyer.address, amount: 5n },
    ]);
  });

  test("an incoming movement by an unchecked transfer, with a memo before it or one of the older program, is read", async () => {
    const plain = createTransferInstruction(
      key(account(buyer.address)),
      key(account(owner.address)),
      key(buyer.address),
      3n,
    );
    for (const program of [MEMO_PROGRAM, MEMO_PROGRAM_1]) {
      expect(await movementsOf(memo("order 7", program), plain)).toEqual([
        { mint, payer: buyer.address, receiver: owner.address, amount: 3n, memo: "order 7", index: 256 },
      ]);
    }
  });

  test("an incoming movement by a delegate has the account's owner as payer, not the delegate", async () => {
    await run(createApproveInstruction(key(account(buyer.address)), key(relayer.address), key(buyer.address), 10n));
    const [from, to] = [key(account(buyer.address)), key(account(owner.address))];
    expect(await movementsOf(createTransferInstruction(from, to, key(relayer.address), 4n))).toMatchObject([
      { payer: buyer.address, amount: 4n, memo: undefined },
    ]);
  });

  test("an incoming movement from an account that is given to the treasury afterwards has no payer", async () => {
    const [deposit, given] = [move(buyer.address, owner.address, 1n), give(buyer.address, owner.address)];
    expect(await movementsOf(deposit, memo("N"), given)).toEqual([
      { mint, payer: "", receiver: owner.address, amount: 1n, memo: "N", index: 0 },
    ]);
  });

  test("an incoming movement from an account that is made and given to the treasury has no payer", async () => {
    const made = [open(relayer.address), move(buyer.address, relayer.address, 5n)];
    const [deposit, given] = [move(relayer.address, owner.address, 1n), give(relayer.address, owner.address)];
    expect(await movementsOf(...made, deposit, given)).toMatchObject([{ payer: "", amount: 1n }]);
  });

  test("an incoming movement from an account that is given to someone else afterwards has no payer", async () => {
    const [deposit, given] = [move(buyer.address, owner.address, 1n), give(buyer.address, merchant)];
    expect(await movementsOf(deposit, given)).toMatchObject([{ payer: "", receiver: owner.address, amount: 1n }]);
  });

  test("an incoming movement from an unlisted account of the treasury's owner has no payer", async () => {
    await run(give(buyer.address, owner.address));
    const [from, to] = [key(account(buyer.address)), key(account(owner.address))];
    expect(await movementsOf(createTransferInstruction(from, to, key(owner.address), 4n))).toMatchObject([
      { payer: "", receiver: owner.address, amount: 4n },
    ]);
  });

  test("an incoming movement by minting, checked or not, has no payer", async () => {
    const [token, to, by] = [key(mint), key(account(owner.address)), key(owner.address)];
    for (const step of [
      createMintToInstruction(token, to, by, 9n),
      createMintToCheckedInstruction(token, to, by, 9n, 6),
    ]) {
      expect(await movementsOf(step)).toEqual([
        { mint, payer: "", receiver: owner.address, amount: 9n, memo: undefined, index: 0 },
      ]);
    }
  });

  test("an incoming movement by an instruction that is too short to decode has its amount but no payer", async () => {
    const landed = await run(move(buyer.address, owner.address, 5n));
    const [instruction] = landed.transaction.message.compiledInstructions;
    if (instruction) instruction.data = instruction.data.slice(0, 5);
    expect(readMovements(landed, treasury)).toMatchObject([{ payer: "", receiver: owner.address, amount: 5n }]);
  });

  test("an incoming movement by a program that calls the Token program is read from the inner instructions", async () => {
    await run(open(account(owner.address)), move(buyer.address, account(owner.address), 8n));
    const landed = await run(memo("before"), recover());
    const [found, ...others] = readMovements(landed, treasury);
    expect(found).toMatchObject({ payer: account(owner.address), receiver: owner.address, amount: 8n, memo: "before" });
    expect(found?.index).toBeGreaterThan(256);
    expect(found?.index).toBeLessThan(512);
    expect(others).toEqual([]);
  });

  test("an incoming movement has its amount but no payer if the inner instructions are missing", async () => {
    await run(open(account(owner.address)), move(buyer.address, account(owner.address), 8n));
    const landed = await run(recover());
    if (landed.meta) landed.meta.innerInstructions = null;
    expect(readMovements(landed, treasury)).toMatchObject([{ mint, payer: "", receiver: owner.address, amount: 8n }]);
  });

  test("an incoming movement of lamports that are wrapped later is read although no token transfer shows it", async () => {
    const wrapped = findTokenAccount(owner.address, NATIVE_MINT.toBase58(), "token");
    await run(open(owner.address, NATIVE_MINT.toBase58()));
    const [found, ...others] = await movementsOf(
      SystemProgram.transfer({ fromPubkey: key(relayer.address), toPubkey: key(wrapped), lamports: 77 }),
      createSyncNativeInstruction(key(wrapped)),
    );
    expect(found).toMatchObject({ mint: NATIVE_MINT.toBase58(), payer: "", receiver: owner.address, amount: 77n });
    expect(found?.index).toBeGreaterThanOrEqual(65_536);
    expect(others).toEqual([]);
  });

  test("an incoming movement in a batch that the Token program runs as one instruction is read, beside a plain transfer", async () => {
    const inner = [move(buyer.address, owner.address, 2n), move(buyer.address, owner.address, 3n)];
    const batch = new TransactionInstruction({
      programId: tokenPrograms.token,
      keys: inner.flatMap((one) => one.keys),
      data: Buffer.concat([
        Buffer.from([255]),
        ...inner.map((one) => Buffer.concat([Buffer.from([one.keys.length, one.data.length]), one.data])),
      ]),
    });
    const found = await movementsOf(move(buyer.address, owner.address, 1n), batch);
    expect(found).toMatchObject([
      { payer: buyer.address, amount: 1n },
      { payer: "", receiver: owner.address, amount: 5n },
    ]);
  });

  test("through accounts of a lookup table is read", async () => {
    const slot = Number(bank.ledger.slots.tip().slot) - 1;
    const [create, table] = AddressLookupTableProgram.createLookupTable({
      authority: key(relayer.address),
      payer: key(relayer.address),
      recentSlot: slot,
    });
    const addresses = [key(account(buyer.address)), key(account(owner.address)), key(mint)];
    const extend = AddressLookupTableProgram.extendLookupTable({
      lookupTable: table,
      authority: key(relayer.address),
      payer: key(relayer.address),
      addresses,
    });
    await run(create, extend);
    bank.advance();
    const state = { deactivationSlot: 2n ** 64n - 1n, lastExtendedSlot: 0, lastExtendedSlotStartIndex: 0, addresses };
    const message = new TransactionMessage({
      payerKey: key(relayer.address),
      recentBlockhash: bank.blockhash(),
      instructions: [move(buyer.address, owner.address, 6n), memo("looked up")],
    }).compileToV0Message([new AddressLookupTableAccount({ key: table, state })]);
    expect(message.addressTableLookups).toHaveLength(1);
    const landed = await bank.land(encodeUnsigned(message.serialize(), 2), relayer, buyer);
    expect(readMovements(landed, treasury)).toEqual([
      { mint, payer: buyer.address, receiver: owner.address, amount: 6n, memo: "looked up", index: 0 },
    ]);
    delete landed.meta?.loadedAddresses;
    expect(() => readMovements(landed, treasury)).toThrow(expect.objectContaining({ code: "rpc_answer" }));
  });
});

describe("an outgoing movement", () => {
  test("an outgoing movement to each of several receivers is read with the memo after it", async () => {
    const [first, second] = [move(owner.address, merchant, 5n), move(owner.address, buyer.address, 6n)];
    expect(await movementsOf(first, memo("a"), second, memo("b"))).toEqual([
      { mint, payer: owner.address, receiver: merchant, amount: 5n, memo: "a", index: 0 },
      { mint, payer: owner.address, receiver: buyer.address, amount: 6n, memo: "b", index: 512 },
    ]);
  });

  test("an outgoing movement has a memo that Postgres can store and index, whatever bytes a program writes", async () => {
    const landed = await run(move(owner.address, merchant, 5n), memo("here"));
    const [, note] = landed.transaction.message.compiledInstructions;
    if (!note) throw new Error("the memo is missing");
    const memoOf = (data: Uint8Array) => {
      note.data = data;
      return readMovements(landed, treasury)[0]?.memo;
    };
    expect(memoOf(Uint8Array.of(0))).toBe("\ufffd");
    expect(memoOf(Uint8Array.of(0xc3, 0x28, 0xff))).toBe("\ufffd(\ufffd");
    // This memo exceeds the size of a Postgres index entry.
    expect(memoOf(Buffer.from("m".repeat(9_000)))).toBe(`${"m".repeat(199)}…`);
  });

  test("an outgoing movement has no memo that follows another movement or precedes several", async () => {
    const [first, second] = [move(owner.address, merchant, 5n), move(owner.address, buyer.address, 6n)];
    expect((await movementsOf(memo("x"), first, second, memo("b"))).map((one) => one.memo)).toEqual([undefined, "b"]);
  });

  test("an outgoing movement by burning, checked or not, has no receiver", async () => {
    const [from, token, by] = [key(account(owner.address)), key(mint), key(owner.address)];
    for (const step of [
      createBurnInstruction(from, token, by, 2n),
      createBurnCheckedInstruction(from, token, by, 2n, 6),
    ]) {
      expect(await movementsOf(step)).toMatchObject([{ payer: owner.address, receiver: "", amount: 2n, index: 0 }]);
    }
  });

  test("an outgoing movement to an account that is given away afterwards has no receiver", async () => {
    const [payout, given] = [move(owner.address, buyer.address, 4n), give(buyer.address, merchant)];
    expect(await movementsOf(payout, given)).toMatchObject([{ payer: owner.address, receiver: "", amount: 4n }]);
  });

  test("an outgoing movement to an unlisted account of the same owner has no receiver", async () => {
    const { accounts } = treasury;
    const only = { owner: owner.address, accounts: new Map([...accounts].filter(([, one]) => one === mint)) };
    const other = makeSigner();
    const state = bank.read(account(owner.address));
    if (!state) throw new Error("no treasury account");
    const data = Buffer.from(state.data);
    data.writeBigUInt64LE(0n, 64);
    bank.ledger.bank.accounts.write(Buffer.from(key(other.address).toBytes()).toString("latin1"), { ...state, data });
    const out = createTransferCheckedInstruction(
      key(account(owner.address)),
      key(mint),
      key(other.address),
      key(owner.address),
      4n,
      6,
    );
    expect(readMovements(await run(out), only)).toEqual([
      { mint, payer: owner.address, receiver: "", amount: 4n, memo: undefined, index: 0 },
    ]);
  });
});

describe("no movement", () => {
  test("no movement is read from a failed transaction", async () => {
    const landed = await run(move(buyer.address, owner.address, 5n), move(buyer.address, owner.address, 1_000n));
    expect(landed.meta?.err).not.toBeNull();
    expect(readMovements(landed, treasury)).toEqual([]);
  });

  test("no movement is read from a transfer of zero, one between others, or one from the treasury to itself", async () => {
    expect(await movementsOf(move(buyer.address, owner.address, 0n))).toEqual([]);
    expect(await movementsOf(move(buyer.address, merchant, 5n))).toEqual([]);
    expect(await movementsOf(move(owner.address, owner.address, 5n))).toEqual([]);
  });

  test("a response without balances is a transient error and never counts as no movement", async () => {
    const landed = await run(move(buyer.address, owner.address, 5n));
    const without = { ...landed, meta: landed.meta && { ...landed.meta, postTokenBalances: null } };
    for (const answer of [without, { ...landed, meta: null }]) {
      expect(() => readMovements(answer, treasury)).toThrow(
        expect.objectContaining({ code: "rpc_answer", transient: true }),
      );
    }
  });
});

describe("a token that takes a fee", () => {
  test("a token that takes a fee moves the amount after the fee into the treasury, and the whole amount out of it", async () => {
    const fees = makeSigner();
    const size = getMintLen([ExtensionType.TransferFeeConfig]);
    const program = tokenPrograms["token-2022"];
    const instructions = [
      SystemProgram.createAccount({
        fromPubkey: key(relayer.address),
        newAccountPubkey: key(fees.address),
        lamports: 10_000_000,
        space: size,
        programId: program,
      }),
      createInitializeTransferFeeConfigInstruction(key(fees.address), null, null, 1_000, 100n, program),
      createInitializeMintInstruction(key(fees.address), 6, key(owner.address), null, program),
    ];
    await bank.land(buildTransaction(relayer.address, instructions, bank.blockhash()), relayer, fees);
    const of = (one: string) => key(findTokenAccount(one, fees.address, "token-2022"));
    await run(open(owner.address, fees.address, "token-2022"), open(buyer.address, fees.address, "token-2022"));
    await run(createMintToInstruction(key(fees.address), of(buyer.address), key(owner.address), 500n, [], program));
    const feeTreasury = { owner: owner.address, accounts: new Map([[of(owner.address).toBase58(), fees.address]]) };
    const send = (from: string, to: string, amount: bigint, fee: bigint) =>
      createTransferCheckedWithFeeInstruction(
        of(from),
        key(fees.address),
        of(to),
        key(from),
        amount,
        6,
        fee,
        [],
        program,
      );
    expect(readMovements(await run(send(buyer.address, owner.address, 100n, 10n)), feeTreasury)).toMatchObject([
      { payer: buyer.address, receiver: owner.address, amount: 90n },
    ]);
    expect(readMovements(await run(send(owner.address, buyer.address, 50n, 5n)), feeTreasury)).toMatchObject([
      { payer: owner.address, receiver: buyer.address, amount: 50n },
    ]);
    const withoutFee = createTransferCheckedInstruction(
      of(buyer.address),
      key(fees.address),
      of(owner.address),
      key(buyer.address),
      200n,
      6,
      [],
      program,
    );
    expect(readMovements(await run(withoutFee), feeTreasury)).toMatchObject([
      { payer: buyer.address, amount: 200n },
      { payer: owner.address, receiver: "", amount: 20n },
    ]);
  });
});

test("the movements of each token add up to the change of its balances, whatever moves", async () => {
  const owners = [owner.address, buyer.address, merchant];
  const step = fc.oneof(
    fc
      .tuple(fc.constantFrom(owner.address, buyer.address), fc.constantFrom(...owners), fc.bigInt(0n, 400n))
      .map(([from, to, amount]) => move(from, to, amount)),
    fc
      .bigInt(0n, 50n)
      .map((amount) =>
        createMintToInstruction(
          key(mint2022),
          key(account(owner.address, "token-2022")),
          key(owner.address),
          amount,
          [],
          tokenPrograms["token-2022"],
        ),
      ),
    fc
      .bigInt(0n, 50n)
      .map((amount) => createBurnInstruction(key(account(owner.address)), key(mint), key(owner.address), amount)),
    fc.constant(memo("m")),
  );
  let moved = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      const held = () =>
        [...treasury.accounts.keys()].map((one) =>
          BigInt(Buffer.from(bank.read(one)?.data ?? Buffer.alloc(72)).readBigUInt64LE(64)),
        );
      const before = held();
      const found = readMovements(await run(...steps), treasury);
      const mints = [...treasury.accounts.values()];
      const changes = mints.map((one) =>
        found
          .filter((it) => it.mint === one)
          .reduce((total, it) => (it.payer === owner.address ? total - it.amount : total + it.amount), 0n),
      );
      expect(changes).toEqual(held().map((now, at) => now - (before[at] ?? 0n)));
      expect(new Set(found.map((it) => it.index)).size).toBe(found.length);
      expect(found.every((it) => it.amount > 0n && it.index < 65_536)).toBe(true);
      moved += found.length;
    }),
    { numRuns: 60 },
  );
  expect(moved).toBeGreaterThan(20);
});
