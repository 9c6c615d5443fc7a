import { base58 } from "@scure/base";
import {
  AuthorityType,
  createApproveInstruction,
  createAssociatedTokenAccountIdempotentInstruction,
  createAssociatedTokenAccountInstruction,
  createBurnInstruction,
  createCloseAccountInstruction,
  createMintToInstruction,
  createRecoverNestedInstruction,
  createRevokeInstruction,
  createSetAuthorityInstruction,
  createSyncNativeInstruction,
  createTransferCheckedInstruction,
  createTransferCheckedWithFeeInstruction,
  createTransferInstruction,
} from "@solana/spl-token";
import {
  AddressLookupTableAccount,
  AddressLookupTableProgram,
  ComputeBudgetProgram,
  Message,
  PublicKey,
  StakeProgram,
  SystemProgram,
  Transaction,
  TransactionInstruction,
  TransactionMessage,
} from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  buildPayment,
  buildTransaction,
  buildTransfer,
  computeBudgetInstructions,
  findTokenAccount,
  MEMO_PROGRAM,
  type SplTransfer,
  tokenPrograms,
} from "../../../../chains/solana/build-payment.ts";
import {
  type CompareLimits,
  compareTransaction,
  validateResultFormat,
  validateSignatures,
} from "../../../../chains/solana/compare-transaction.ts";
import { LIGHTHOUSE_PROGRAM } from "../../../../chains/solana/lighthouse-guards.ts";
import {
  encodeUnsigned,
  type ParsedTransaction,
  parseTransaction,
  withSignature,
} from "../../../../chains/solana/wire-format.ts";
import { codePoint } from "../../../support/code-points.ts";
import * as forms from "./guard-forms.ts";
import {
  blockhash,
  budget,
  buyer,
  makeAddress,
  makeSigner,
  makeTransfer,
  mint,
  relayer,
  treasury,
} from "./solana-fixtures.ts";

const key = (address: string) => new PublicKey(address);
const account = (owner: string, program: "token" | "token-2022" = "token") => findTokenAccount(owner, mint, program);
const secondRelayer = makeAddress();
const limits: CompareLimits = {
  maxFee: 1_000n,
  ours: new Set([treasury, account(treasury), account(treasury, "token-2022"), relayer.address, secondRelayer]),
};
const transfer = makeTransfer();
const withCreation = makeTransfer({ makeReceiverAccount: true });
const stranger = makeAddress();

function parse(bytes: Uint8Array): ParsedTransaction {
  const parsed = parseTransaction(bytes);
  if ("error" in parsed) throw new Error(parsed.error);
  return parsed;
}

/** Returns the reasons to refuse a transaction of these instructions, if we built `expected`. */
function reasonsOf(instructions: TransactionInstruction[], expected: SplTransfer = transfer): string[] {
  return compareTransaction(parse(buildTransaction(relayer.address, instructions, blockhash)), expected, limits);
}

const built = (expected: SplTransfer = transfer) => [...computeBudgetInstructions(budget), ...buildTransfer(expected)];
const memo = (text: string) =>
  new TransactionInstruction({ programId: key(MEMO_PROGRAM), keys: [], data: Buffer.from(text) });
const guard = (data: number[], ...accounts: string[]) =>
  new TransactionInstruction({
    programId: key(LIGHTHOUSE_PROGRAM),
    keys: accounts.map((one) => ({ pubkey: key(one), isSigner: false, isWritable: false })),
    data: Buffer.from(data),
  });
/** Several assertions about the payer's token account, as wallets add them. */
const usualGuard = () =>
  guard(forms.assertTokenMulti(forms.amount(5n), forms.noDelegate, forms.isAssociated), account(buyer.address));

describe("the transaction that we built", () => {
  test.each([
    ["on the Token program", transfer],
    ["that creates the receiver's account", withCreation],
    ["on Token-2022", makeTransfer({ program: "token-2022", makeReceiverAccount: true })],
    ["with an amount of zero", makeTransfer({ amount: 0n, memo: "" })],
    ["with the largest amount", makeTransfer({ amount: 2n ** 64n - 1n })],
    ["to another receiver", makeTransfer({ receiver: stranger })],
    ["to an address off the curve", makeTransfer({ receiver: account(stranger) })],
  ])("%s is accepted with any blockhash", (_, expected) => {
    for (const hash of [blockhash, makeAddress()]) {
      expect(compareTransaction(parse(buildPayment(expected, budget, hash)), expected, limits)).toEqual([]);
    }
  });

  test("the transaction that we built is accepted in the legacy format", () => {
    const legacy = new Transaction({ feePayer: key(relayer.address), recentBlockhash: blockhash });
    const bytes = legacy
      .add(...built(withCreation))
      .serialize({ requireAllSignatures: false, verifySignatures: false });
    expect(parse(bytes).bytes[129]).toBeLessThan(0x80);
    expect(compareTransaction(parse(bytes), withCreation, limits)).toEqual([]);
  });

  test("the transaction that we built is accepted if the wallet marks its own account writable", () => {
    const parsed = parse(buildPayment(transfer, budget, blockhash));
    const message = Uint8Array.from(parsed.message);
    message[2] = 0;
    const changed = parse(encodeUnsigned(message, 2));
    expect(changed.accounts[1]).toEqual({ address: buyer.address, signer: true, writable: true });
    expect(compareTransaction(changed, transfer, limits)).toEqual([]);
  });
});

describe("a wallet's compute budget with", () => {
  const [unitLimit, unitPrice] = [ComputeBudgetProgram.setComputeUnitLimit, ComputeBudgetProgram.setComputeUnitPrice];
  const withBudget = (...budgets: TransactionInstruction[]) => reasonsOf([...budgets, ...buildTransfer(transfer)]);
  const units = (count: number) => unitLimit.call(ComputeBudgetProgram, { units: count });
  const price = (each: bigint) => unitPrice.call(ComputeBudgetProgram, { microLamports: each });

  test.each([
    ["no instructions", []],
    ["only a limit", [units(1_400_000)]],
    ["a fee of exactly the cap", [units(100_000), price(10_000n)]],
    ["a fee that reaches the cap by rounding up", [units(99_999), price(10_000n)]],
    ["the price before the limit", [price(1n), units(200_000)]],
    ["no limit, and a price that fits the default of two instructions", [price(2_481n)]],
    ["a limit above the runtime's maximum, to which the runtime cuts it", [units(2 ** 32 - 1), price(714n)]],
    ["the highest price for zero units", [units(0), price(2n ** 64n - 1n)]],
  ])("%s is accepted", (_, budgets) => {
    expect(withBudget(...budgets)).toEqual([]);
  });

  test.each([
    ["a fee one lamport above the cap", [units(100_000), price(10_001n)], "1001 lamports is above the 1000"],
    ["no limit, and a price too high for the default", [price(2_482n)], "1001 lamports"],
    ["the largest limit and price", [units(2 ** 32 - 1), price(2n ** 64n - 1n)], "above the 1000"],
    ["one unit at an enormous price", [units(1), price(2n ** 64n - 1n)], "above the 1000"],
    ["two limits", [units(1), units(1)], "limit is set more than once"],
    ["two prices", [price(1n), price(1n)], "price is set more than once"],
    ["two prices, the second one high", [units(1_000), price(0n), price(2n ** 40n)], "above the 1000"],
    ["a heap frame", [ComputeBudgetProgram.requestHeapFrame({ bytes: 32_768 })], "neither"],
    [
      "a limit of the loaded account data",
      [
        new TransactionInstruction({
          programId: ComputeBudgetProgram.programId,
          keys: [],
          data: Buffer.from([4, 0, 1, 0, 0]),
        }),
      ],
      "neither",
    ],
    [
      "a price with a trailing byte, which the runtime accepts",
      [
        new TransactionInstruction({
          programId: ComputeBudgetProgram.programId,
          keys: [],
          data: Buffer.concat([price(2n ** 63n).data, Buffer.from([0])]),
        }),
      ],
      "neither",
    ],
    [
      "a limit that names an account",
      [
        new TransactionInstruction({
          ...units(1),
          keys: [{ pubkey: key(buyer.address), isSigner: true, isWritable: true }],
        }),
      ],
      "neither",
    ],
    ["empty data", [new TransactionInstruction({ programId: ComputeBudgetProgram.programId, keys: [] })], "neither"],
  ])("%s is refused", (_, budgets, reason) => {
    expect(withBudget(...budgets).join("\n")).toContain(reason);
  });
});

describe("a wallet's guards", () => {
  test("a wallet's guards are accepted up to four, before, between and after our instructions", () => {
    for (const count of [1, 2, 3, 4]) {
      const guards = Array.from({ length: count }, usualGuard);
      const [limit, price, ...body] = built();
      if (!limit || !price) throw new Error("no budget");
      expect(reasonsOf([...guards, ...built()])).toEqual([]);
      expect(reasonsOf([limit, price, ...guards.slice(1), ...body, ...guards.slice(0, 1)])).toEqual([]);
      expect(reasonsOf([...built(), ...guards])).toEqual([]);
    }
  });

  test("a wallet's guards are accepted where Phantom puts them, with its lengths, also if they read the fee payer's lamports", () => {
    const [limit, price, ...body] = built();
    if (!limit || !price) throw new Error("no budget");
    const [own, source] = [buyer.address, account(buyer.address)];
    const before = [
      guard(forms.assertTokenMulti(forms.amount(5n), forms.noDelegate, forms.isAssociated), source),
      guard(forms.assertInfoMulti(forms.dataHash(), forms.lamports(1n), forms.knownOwner(1)), source),
      guard(forms.assertInfoMulti(forms.lamports(1_000n), forms.knownOwner(0)), relayer.address),
    ];
    const after = guard(
      forms.assertTokenMulti(forms.amount(4n), forms.delegatedAmount(0n), forms.noDelegate, forms.isAssociated),
      source,
    );
    expect([...before, after].map(({ data }) => data.length)).toEqual([17, 52, 16, 27]);
    expect(reasonsOf([limit, price, ...before, ...body, after])).toEqual([]);
    expect(reasonsOf([...built(), guard(forms.assertInfo(forms.lamports(1n)), own)])).toEqual([]);
  });

  test("a wallet's guards are refused if there are five", () => {
    expect(reasonsOf([...built(), ...Array.from({ length: 5 }, usualGuard)])).toEqual([
      "there are 5 Lighthouse guards, 4 are allowed",
    ]);
  });

  const source = account(buyer.address);
  const ofInfo: [string, number[]][] = [
    ["lamports", forms.assertInfo(forms.lamports(1n))],
    ["exact lamports", forms.assertInfo(forms.lamports(1n, forms.EQUAL))],
    ["a data length", forms.assertInfo(forms.dataLength(0n))],
    ["an owner", forms.assertInfo(forms.owner(key(stranger).toBytes()))],
    ["a known owner", forms.assertInfo(forms.knownOwner(0))],
    ["a signer", forms.assertInfo([5, 1, forms.EQUAL])],
    ["a hash of the data", forms.assertInfo(forms.dataHash())],
    ["several facts", forms.assertInfoMulti(forms.lamports(1n), forms.knownOwner(0))],
    ["lamports, and log when they differ", forms.assertInfo(forms.lamports(1n), 4)],
  ];
  const ofData: [string, number[]][] = [
    ["a value in the data", forms.assertData(64, [7, ...new Array(8).fill(0), forms.EQUAL])],
    ["bytes in the data", forms.assertData(0, [11, 3, 1, 2, 3, forms.EQUAL])],
    ["a key in the data", forms.assertData(0, [12, ...key(mint).toBytes(), forms.EQUAL])],
    ["several values in the data", forms.assertDataMulti(forms.u64At(64, 5n), forms.u64At(121, 0n))],
    ["a mint's decimals", forms.assertMint(6)],
    ["several facts about a mint", forms.assertMintMulti(6, 6)],
    ["a token account's mint", forms.assertToken(forms.mintedBy(key(mint).toBytes()))],
    ["a token account's owner", forms.assertToken(forms.ownedBy(key(buyer.address).toBytes()))],
    ["a token account's amount", forms.assertToken(forms.amount(5n))],
    ["a token account's delegate", forms.assertToken(forms.noDelegate)],
    [
      "several facts about a token account",
      forms.assertTokenMulti(forms.initialized, forms.notNative, forms.noCloseAuthority, forms.isAssociated),
    ],
  ];

  test.each([...ofInfo, ...ofData])(
    "a wallet's guards that assert %s are accepted for the payer and for the receiver",
    (_, data) => {
      expect(reasonsOf([...built(), guard(data, source)])).toEqual([]);
      expect(reasonsOf([...built(), guard(data, account(treasury))])).toEqual([]);
    },
  );

  test("a wallet's guards that compare two accounts are accepted", () => {
    expect(reasonsOf([...built(), guard(forms.assertDelta(64, 64, 0n), source, account(treasury))])).toEqual([]);
    const lamportsSince = [4, 0, 0, 0, 0, ...new Array(16).fill(0), forms.EQUAL];
    expect(reasonsOf([...built(), guard(lamportsSince, source, source)])).toEqual([]);
  });

  test.each(ofInfo)("a wallet's guards that assert %s are accepted for the fee payer", (_, data) => {
    expect(reasonsOf([...built(), guard(data, relayer.address)])).toEqual([]);
  });

  test.each(ofData)("a wallet's guards that assert %s are refused for the fee payer", (_, data) => {
    expect(reasonsOf([...built(), guard(data, relayer.address)]).join()).toContain(
      `names the fee payer ${relayer.address}, which only AssertAccountInfo may`,
    );
  });

  test("a wallet's guards that compare the fee payer with another account are refused", () => {
    const data = forms.assertDelta(64, 64, 0n);
    for (const accounts of [[relayer.address, source] as const, [source, relayer.address] as const])
      expect(reasonsOf([...built(), guard(data, ...accounts)]).join()).toContain("names the fee payer");
  });

  test.each([
    ["write memory", [0, 0, 255, 0, 0], "MemoryWrite, which a payer funds"],
    ["close memory", [1, 0, 255], "MemoryClose"],
    ["assert a stake account", [11, 0, 0, 0, 0], "AssertStakeAccount,"],
    ["assert several facts about a stake account", [12, 0, 0], "AssertStakeAccountMulti"],
    ["assert a program account", [13, 0, 0, 0, 0], "AssertUpgradeableLoaderAccount,"],
    ["assert several facts about a program account", [14, 0, 0], "AssertUpgradeableLoaderAccountMulti"],
    ["assert the time", forms.assertClock(1n), "by the time at which it lands"],
    ["verify a leaf of a Merkle tree", [16, 0, 0], "which calls another program"],
    ["assert a Merkle tree's configuration", [17, 0, 0], "AssertBubblegumTreeConfigAccount"],
    ["are of an unknown kind", [18, 0, 0], "the unknown kind 18"],
    ["are of the last kind", [255, 0, 0], "the unknown kind 255"],
    ["are empty", [], "the unknown kind (empty)"],
  ])("a wallet's guards that %s are refused with their own reason", (_, data, reason) => {
    const reasons = reasonsOf([...built(), guard(data, source)]);
    expect(reasons).toHaveLength(1);
    expect(reasons[0]).toContain(reason);
  });

  test.each([
    ["are cut off", forms.assertInfo(forms.lamports(1n)).slice(0, -1)],
    ["have another byte after their form", [...forms.assertInfo(forms.lamports(1n)), 0]],
    ["have a fact that their source does not define", forms.assertInfo([9, 0, 0])],
    ["have an operator that their source does not define", forms.assertInfo(forms.lamports(1n, 8))],
    ["call another program to log", forms.assertInfo(forms.lamports(1n), 3)],
    ["call another program to log a failure", forms.assertInfo(forms.lamports(1n), 6)],
    ["have a log level that their source does not define", forms.assertInfo(forms.lamports(1n), 7)],
    ["announce more facts than they have", [10, 0, 2, ...forms.noDelegate]],
    ["announce a long list", [10, 0, 128, 1, ...forms.noDelegate]],
    ["have a number that does not end", [2, 0, ...new Array(11).fill(255), 0, 0, 0]],
    ["have only their kind", [5]],
  ])("a wallet's guards that %s are refused", (_, data) => {
    expect(reasonsOf([...built(), guard(data, source)]).join()).toContain("is not in the form that its source defines");
  });

  test("a wallet's guards that name more or fewer accounts than their form has are refused", () => {
    const data = forms.assertInfo(forms.lamports(1n));
    expect(reasonsOf([...built(), guard(data)]).join()).toContain("names 0 accounts, its form has 1");
    expect(reasonsOf([...built(), guard(data, source, relayer.address)]).join()).toContain("names 2 accounts");
  });

  test.each([
    ["another relayer", secondRelayer],
    ["the treasury", treasury],
  ])("a wallet's guards that name %s are refused", (_, address) => {
    expect(reasonsOf([...built(), guard(forms.assertInfo(forms.lamports(1n)), address)])).toEqual([
      `${address} is ours and has no place here`,
    ]);
  });

  test("a wallet's guards that write their own account at our expense are refused for both", () => {
    const write = new TransactionInstruction({
      programId: key(LIGHTHOUSE_PROGRAM),
      keys: [
        { pubkey: key(LIGHTHOUSE_PROGRAM), isSigner: false, isWritable: false },
        { pubkey: SystemProgram.programId, isSigner: false, isWritable: false },
        { pubkey: key(relayer.address), isSigner: true, isWritable: true },
        { pubkey: key(stranger), isSigner: false, isWritable: true },
      ],
      data: Buffer.from([0, 0, 255, 0, 0]),
    });
    const reasons = reasonsOf([...built(), write]).join("\n");
    expect(reasons).toContain("MemoryWrite, which a payer funds");
    expect(reasons).toContain(`${stranger} must not be writable`);
  });

  test("a wallet's guards that require another signature are refused", () => {
    const signed = new TransactionInstruction({
      ...usualGuard(),
      keys: [{ pubkey: key(stranger), isSigner: true, isWritable: false }],
    });
    expect(reasonsOf([...built(), signed])).toEqual([`${stranger} must not sign`]);
  });
});

describe("an additional instruction:", () => {
  const [us, payer] = [key(relayer.address), key(buyer.address)];
  const ours = key(account(treasury));
  const theirs = key(account(buyer.address));
  const other = key(stranger);
  const nonce = key(makeAddress());
  const attacks: [string, TransactionInstruction, string][] = [
    [
      "a transfer of our SOL",
      SystemProgram.transfer({ fromPubkey: us, toPubkey: payer, lamports: 1 }),
      "Transfer of the System program",
    ],
    [
      "a transfer of the payer's own SOL",
      SystemProgram.transfer({ fromPubkey: payer, toPubkey: other, lamports: 1 }),
      "Transfer of the System program",
    ],
    [
      "an account created with our SOL",
      SystemProgram.createAccount({ fromPubkey: us, newAccountPubkey: payer, lamports: 1, space: 0, programId: other }),
      "CreateAccount of the System program",
    ],
    [
      "an account created from a seed with our SOL",
      SystemProgram.createAccountWithSeed({
        fromPubkey: us,
        basePubkey: us,
        seed: "x",
        newAccountPubkey: other,
        lamports: 1,
        space: 0,
        programId: other,
      }),
      "CreateAccountWithSeed of the System program",
    ],
    [
      "our account assigned to another program",
      SystemProgram.assign({ accountPubkey: us, programId: other }),
      "Assign of the System program",
    ],
    [
      "space allocated in our account",
      SystemProgram.allocate({ accountPubkey: us, space: 10 }),
      "Allocate of the System program",
    ],
    [
      "an advance of a nonce of ours",
      SystemProgram.nonceAdvance({ noncePubkey: nonce, authorizedPubkey: us }),
      "AdvanceNonceAccount of the System program",
    ],
    [
      "a withdrawal from a nonce account of ours",
      SystemProgram.nonceWithdraw({ noncePubkey: nonce, authorizedPubkey: us, toPubkey: payer, lamports: 1 }),
      "WithdrawNonceAccount of the System program",
    ],
    [
      "a new authority of our nonce account",
      SystemProgram.nonceAuthorize({ noncePubkey: nonce, authorizedPubkey: us, newAuthorizedPubkey: payer }),
      "AuthorizeNonceAccount of the System program",
    ],
    ["an approval for our tokens", createApproveInstruction(ours, payer, us, 1n), "Approve of the Token program"],
    ["a revocation", createRevokeInstruction(theirs, payer), "Revoke of the Token program"],
    [
      "our token account closed to the payer",
      createCloseAccountInstruction(ours, payer, us),
      "CloseAccount of the Token program",
    ],
    [
      "the payer's token account closed to us",
      createCloseAccountInstruction(theirs, us, payer),
      "CloseAccount of the Token program",
    ],
    [
      "a new authority",
      createSetAuthorityInstruction(ours, us, AuthorityType.AccountOwner, payer),
      "SetAuthority of the Token program",
    ],
    [
      "an unchecked transfer out of our account",
      createTransferInstruction(ours, theirs, us, 1n),
      "Transfer of the Token program",
    ],
    ["a burn of our tokens", createBurnInstruction(ours, key(mint), us, 1n), "Burn of the Token program"],
    ["tokens minted to us", createMintToInstruction(key(mint), ours, us, 1n), "MintTo of the Token program"],
    ["a sync of native SOL", createSyncNativeInstruction(theirs), "SyncNative of the Token program"],
    [
      "a transfer with a fee",
      createTransferCheckedWithFeeInstruction(
        theirs,
        key(mint),
        ours,
        payer,
        1n,
        6,
        0n,
        [],
        tokenPrograms["token-2022"],
      ),
      "TransferFeeExtension of Token-2022",
    ],
    [
      "a stake account",
      StakeProgram.deactivate({ stakePubkey: other, authorizedPubkey: us }).instructions[0] ?? memo(""),
      "a call of Stake",
    ],
    [
      "a lookup table",
      AddressLookupTableProgram.createLookupTable({ authority: us, payer: us, recentSlot: 1 })[0],
      "a call of AddressLookupTab1e",
    ],
    [
      "a call of an unknown program",
      new TransactionInstruction({ programId: other, keys: [] }),
      `a call of ${stranger}`,
    ],
  ];

  test.each(attacks)("%s is refused with its name", (_, attack, name) => {
    for (const instructions of [
      [...built(), attack],
      [attack, ...built()],
    ]) {
      const reasons = reasonsOf(instructions);
      expect(reasons.join("\n")).toContain(`is ${name}`);
      expect(reasons.join("\n")).toContain("which we did not build");
    }
  });

  test.each(attacks.filter(([, attack]) => attack.keys.some((one) => one.pubkey.equals(us))))(
    "%s is also refused because it names our relayer",
    (_, attack) => {
      expect(reasonsOf([...built(), attack])).toContainEqual(
        `instruction 5 names ${relayer.address}, which is the fee payer or an account of ours`,
      );
    },
  );

  test("several at once are refused with every reason", () => {
    const all = attacks.slice(0, 8).map(([, attack]) => attack);
    const reasons = reasonsOf([...built(), ...all]);
    expect(reasons.filter((reason) => reason.includes("which we did not build"))).toHaveLength(8);
  });

  test("a second transfer to us or from our treasury is refused", () => {
    const [move] = buildTransfer(transfer);
    if (!move) throw new Error("nothing built");
    expect(reasonsOf([...built(), move])).toEqual(['there are 2 of "TransferChecked instruction", we built 1']);
    const out = createTransferCheckedInstruction(ours, key(mint), theirs, us, 1n, 6);
    const reasons = reasonsOf([...built(), out]).join("\n");
    expect(reasons).toContain("there are 2");
    expect(reasons).toContain(`has ${relayer.address} as its authority`);
    expect(reasons).toContain(`has ${account(treasury)} as its source token account`);
  });

  test("a second memo is refused, whether it is the same, another one, or one of the older program", () => {
    const older = new TransactionInstruction({
      ...memo("x"),
      programId: key("Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo"),
    });
    for (const more of [memo(transfer.memo), memo("x"), older]) {
      expect(reasonsOf([...built(), more])).toContain('there are 2 of "memo", we built 1');
    }
  });
});

describe("the transaction that we built with", () => {
  const other = makeTransfer({ payer: stranger });
  test.each<[string, Partial<SplTransfer>, string]>([
    [
      "another amount",
      { amount: 12_499_999n },
      "moves 12499999 with 6 decimals, we built it with 12500000 with 6 decimals",
    ],
    ["an amount of zero", { amount: 0n }, "moves 0 with 6"],
    ["the largest amount", { amount: 2n ** 64n - 1n }, "moves 18446744073709551615 with 6"],
    ["an amount with the same lower 32 bits", { amount: 12_500_000n + 2n ** 32n }, "moves 4307467296 with 6"],
    ["other decimals", { decimals: 9 }, "with 9 decimals"],
    ["another mint", { mint: stranger }, `has ${stranger} as its mint`],
    ["another receiver", { receiver: stranger }, `has ${account(stranger)} as its destination token account`],
    ["another payer", { payer: stranger }, `has ${account(stranger)} as its source token account`],
    [
      "Token-2022 instead of Token",
      { program: "token-2022" },
      `calls ${tokenPrograms["token-2022"].toBase58()}, we built it for`,
    ],
    ["another memo", { memo: "pay_other" }, `says "pay_other", we built it with "${transfer.memo}"`],
    ["a memo cut short", { memo: transfer.memo.slice(0, -1) }, "the memo, says"],
    ["an empty memo", { memo: "" }, 'says ""'],
  ])("%s is refused", (_, change, reason) => {
    expect(reasonsOf(built({ ...transfer, ...change })).join("\n")).toContain(reason);
  });

  test("Token instead of Token-2022 is refused", () => {
    const expected = makeTransfer({ program: "token-2022" });
    expect(reasonsOf(built(transfer), expected).join("\n")).toContain("we built it for Tokenz");
  });

  test("a token account of the payer that is not the associated one is refused", () => {
    const [, , move, note] = built();
    if (!move || !note) throw new Error("nothing built");
    move.keys[0] = { pubkey: key(stranger), isSigner: false, isWritable: true };
    expect(reasonsOf([move, note]).join("\n")).toContain(`has ${stranger} as its source token account`);
  });

  test("no memo, no transfer, or no instruction is refused", () => {
    const [limit, price, move, note] = built();
    if (!limit || !price || !move || !note) throw new Error("nothing built");
    expect(reasonsOf([limit, price, move])).toContain('there are 0 of "memo", we built 1');
    expect(reasonsOf([limit, price, note])).toContain('there are 0 of "TransferChecked instruction", we built 1');
    expect(reasonsOf([])).toHaveLength(3);
  });

  test("a memo that requires a signature or precedes the transfer is refused", () => {
    const [, , move, note] = built();
    if (!move || !note) throw new Error("nothing built");
    expect(reasonsOf([note, move])).toEqual(["our instructions are in another order"]);
    const signed = new TransactionInstruction({
      ...note,
      keys: [{ pubkey: key(relayer.address), isSigner: true, isWritable: false }],
    });
    expect(reasonsOf([move, signed])).toContain("instruction 2, the memo, names 1 accounts, we built it with 0");
  });

  test("a transfer with another number of accounts or bytes is refused", () => {
    const [, , move, note] = built();
    if (!move || !note) throw new Error("nothing built");
    const longer = new TransactionInstruction({ ...move, data: Buffer.concat([move.data, Buffer.from([0])]) });
    expect(reasonsOf([longer, note]).join()).toContain("has 11 bytes of data, we built it with 10");
    const shorter = new TransactionInstruction({ ...move, data: move.data.subarray(0, 9) });
    expect(reasonsOf([shorter, note]).join()).toContain("has 9 bytes of data");
    const wider = new TransactionInstruction({
      ...move,
      keys: [...move.keys, { pubkey: key(stranger), isSigner: false, isWritable: false }],
    });
    expect(reasonsOf([wider, note]).join()).toContain("names 5 accounts");
  });

  test("another payer, or an account of ours as payer, is refused", () => {
    expect(reasonsOf(built(other)).join("\n")).toContain(`${stranger} must not sign`);
    expect(reasonsOf(built(other)).join("\n")).toContain(`the payer ${buyer.address} does not sign`);
    for (const payer of [relayer.address, treasury, secondRelayer]) {
      const expected = makeTransfer({ payer, receiver: stranger });
      expect(reasonsOf(built(expected), expected)).toContain(`the payer ${payer} is an account of ours`);
    }
  });
});

describe("the creation of the receiver's token account", () => {
  const [us, owner, mintKey] = [key(relayer.address), key(treasury), key(mint)];
  const ata = key(account(treasury));

  test("the creation of the receiver's token account is refused if the wallet dropped it, or added it", () => {
    expect(reasonsOf(built(transfer), withCreation)).toContain(
      'there are 0 of "instruction that makes a token account", we built 1',
    );
    expect(reasonsOf(built(withCreation), transfer)).toContain(
      'there are 1 of "instruction that makes a token account", we built 0',
    );
  });

  test.each<[string, TransactionInstruction, string]>([
    ["added a second time", createAssociatedTokenAccountIdempotentInstruction(us, ata, owner, mintKey), "there are 2"],
    [
      "followed by that of a stranger's account at our expense",
      createAssociatedTokenAccountIdempotentInstruction(us, key(account(stranger)), key(stranger), mintKey),
      `has ${stranger} as its owner`,
    ],
    [
      "followed by a RecoverNested instruction",
      createRecoverNestedInstruction(ata, mintKey, ata, ata, mintKey, us),
      "is not CreateIdempotent",
    ],
  ])("is refused if it is %s", (_, more, reason) => {
    expect(reasonsOf([...built(withCreation), more], withCreation).join("\n")).toContain(reason);
  });

  test("the creation of the receiver's token account is refused for another owner, another payer or another program, or if it is not idempotent", () => {
    const [limit, price, , ...rest] = built(withCreation);
    if (!limit || !price) throw new Error("nothing built");
    const instead = (one: TransactionInstruction) => reasonsOf([limit, price, one, ...rest], withCreation).join("\n");
    const make = createAssociatedTokenAccountIdempotentInstruction;
    expect(instead(make(us, key(account(stranger)), key(stranger), mintKey))).toContain(`has ${stranger} as its owner`);
    expect(instead(make(key(secondRelayer), ata, owner, mintKey))).toContain(`${secondRelayer} must not sign`);
    expect(instead(make(key(buyer.address), ata, owner, mintKey))).toContain(`has ${buyer.address} as its payer`);
    expect(instead(make(us, ata, owner, mintKey, tokenPrograms["token-2022"]))).toContain("as its token program");
    expect(instead(createAssociatedTokenAccountInstruction(us, ata, owner, mintKey))).toContain(
      "is not CreateIdempotent",
    );
  });
});

describe("the accounts and signers of a transaction:", () => {
  const compileFor = (feePayer: string, instructions: TransactionInstruction[]) =>
    compareTransaction(parse(buildTransaction(feePayer, instructions, blockhash)), transfer, limits);

  test("the payer, a stranger or another relayer of ours as fee payer is refused", () => {
    for (const feePayer of [buyer.address, stranger, secondRelayer]) {
      expect(compileFor(feePayer, built())).toContain(
        `the fee payer is ${feePayer}, we built it with ${relayer.address}`,
      );
    }
  });

  test("an additional signer is refused", () => {
    const [limit, price, move, note] = built();
    if (!limit || !price || !move || !note) throw new Error("nothing built");
    move.keys[1] = { pubkey: key(mint), isSigner: true, isWritable: false };
    expect(reasonsOf([limit, price, move, note])).toEqual([`${mint} must not sign`]);
  });

  /** Returns the reasons to refuse our transaction with one more account in its list. */
  function reasonsWith(address: string): string[] {
    const { header, staticAccountKeys, compiledInstructions } = new TransactionMessage({
      payerKey: key(relayer.address),
      recentBlockhash: blockhash,
      instructions: built(),
    }).compileToV0Message();
    const message = new Message({
      header: { ...header, numReadonlyUnsignedAccounts: header.numReadonlyUnsignedAccounts + 1 },
      accountKeys: [...staticAccountKeys, key(address)],
      recentBlockhash: blockhash,
      instructions: compiledInstructions.map((one) => ({
        programIdIndex: one.programIdIndex,
        accounts: one.accountKeyIndexes,
        data: base58.encode(one.data),
      })),
    });
    return compareTransaction(parse(encodeUnsigned(message.serialize(), 2)), transfer, limits);
  }

  test("an unused account is refused, and one of ours also because it is protected", () => {
    for (const address of [treasury, secondRelayer, stranger]) {
      const reasons = reasonsWith(address);
      expect(reasons).toContain(`${address} is listed and no instruction uses it`);
      expect(reasons.includes(`${address} is ours and has no place here`)).toBe(address !== stranger);
    }
  });

  test("an account that is listed twice is refused, although an instruction uses it", () => {
    expect(reasonsWith(mint)).toEqual([`${mint} is listed twice`]);
  });

  test("lookup tables are refused, whatever they contain", () => {
    const table = new AddressLookupTableAccount({
      key: key(stranger),
      state: {
        deactivationSlot: 0n,
        lastExtendedSlot: 0,
        lastExtendedSlotStartIndex: 0,
        addresses: [key(account(treasury)), key(mint)],
      },
    });
    const message = new TransactionMessage({
      payerKey: key(relayer.address),
      recentBlockhash: blockhash,
      instructions: built(),
    }).compileToV0Message([table]);
    const reasons = compareTransaction(parse(encodeUnsigned(message.serialize(), 2)), transfer, limits);
    expect(reasons).toContain("the transaction uses address lookup tables");
    expect(reasons.join("\n")).toContain("entry");
  });

  test("accounts that are read-only but must be writable, or the reverse, are refused", () => {
    const parsed = parse(buildPayment(transfer, budget, blockhash));
    const withReadonly = (change: number) => {
      const message = Uint8Array.from(parsed.message);
      message[3] = (message[3] ?? 0) + change;
      return compareTransaction(parse(encodeUnsigned(message, 2)), transfer, limits);
    };
    expect(withReadonly(1).join()).toContain("has to be writable");
    expect(withReadonly(-1).join()).toContain("must not be writable");
  });
});

describe("an accepted transaction differs only in blockhash, budget, signatures and the payer's writable flag", () => {
  const original = parse(buildPayment(withCreation, budget, blockhash));

  /** The parts of an accepted transaction that must equal the original. */
  const fixedParts = (parsed: ParsedTransaction) => ({
    accounts: parsed.accounts.map((one) => (one.address === buyer.address ? { ...one, writable: true } : one)),
    instructions: parsed.instructions.filter((one) => one.program !== ComputeBudgetProgram.programId.toBase58()),
    budget: parsed.instructions.filter((one) => one.program === ComputeBudgetProgram.programId.toBase58()).length,
    lookupTables: parsed.lookupTables,
  });

  test("for every byte of the message, set to values that have a meaning somewhere", () => {
    let accepted = 0;
    for (let at = 129; at < original.bytes.length; at++) {
      const byte = original.bytes[at] ?? 0;
      for (const value of new Set([0, 1, 2, 12, 128, 255, byte ^ 1, byte + 1])) {
        const bytes = Uint8Array.from(original.bytes);
        bytes[at] = value;
        const parsed = parseTransaction(bytes);
        if (value === byte || "error" in parsed || compareTransaction(parsed, withCreation, limits).length > 0)
          continue;
        accepted++;
        expect(fixedParts(parsed)).toEqual(fixedParts(original));
      }
    }
    // At least the 32 bytes of the blockhash may have any value.
    expect(accepted).toBeGreaterThan(32 * 5);
  });

  test("for several bytes at once", () => {
    const change = fc.tuple(fc.integer({ min: 129, max: original.bytes.length - 1 }), fc.nat(255));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 5 }), (changes) => {
        const bytes = Uint8Array.from(original.bytes);
        for (const [at, value] of changes) bytes[at] = value;
        const parsed = parseTransaction(bytes);
        if ("error" in parsed || compareTransaction(parsed, withCreation, limits).length > 0) return;
        expect(fixedParts(parsed)).toEqual(fixedParts(original));
      }),
      { numRuns: 2_000 },
    );
  });

  test("for instructions that are dropped, repeated, reordered or changed in an account", () => {
    const steps = built(withCreation);
    const arbitrary = fc.tuple(
      fc.array(fc.nat(steps.length - 1), { maxLength: 7 }),
      fc.option(fc.tuple(fc.nat(6), fc.nat(6), fc.constantFrom(relayer.address, treasury, stranger, buyer.address))),
    );
    fc.assert(
      fc.property(arbitrary, ([picked, swap]) => {
        const copy = picked.flatMap((at) => {
          const one = steps[at];
          return one ? [new TransactionInstruction({ ...one, keys: [...one.keys] })] : [];
        });
        const meta = swap && copy[swap[0]]?.keys[swap[1]];
        if (swap && meta) copy[swap[0]]?.keys.splice(swap[1], 1, { ...meta, pubkey: key(swap[2]) });
        const parsed = parse(buildTransaction(relayer.address, copy, blockhash));
        if (compareTransaction(parsed, withCreation, limits).length > 0) return;
        const names = (one: ParsedTransaction) =>
          one.instructions
            .filter((it) => it.program !== ComputeBudgetProgram.programId.toBase58())
            .map((it) => ({
              program: it.program,
              data: it.data,
              accounts: it.accounts.map((index) => one.accounts[index]?.address),
            }));
        expect(names(parsed)).toEqual(names(original));
      }),
      { numRuns: 1_000 },
    );
  });

  test("and the comparison never throws for a transaction that parses", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(original.bytes.length), fc.nat(255)), { maxLength: 30 }), (changes) => {
        const bytes = Uint8Array.from(original.bytes);
        for (const [at, value] of changes) bytes[at] = value;
        const parsed = parseTransaction(bytes);
        if ("error" in parsed) return;
        for (const reason of compareTransaction(parsed, transfer, limits)) expect(reason).toMatch(/^[^\n]+$/);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("the signatures of a transaction", () => {
  const unsigned = parse(buildPayment(transfer, budget, blockhash));
  const signedBy = (signature: Uint8Array) => parse(withSignature(unsigned, buyer.address, signature));
  const signed = signedBy(buyer.sign(unsigned.message));

  test("the signatures of a transaction are accepted from the payer alone, and from payer and relayer", () => {
    expect(validateSignatures(signed, buyer.address)).toBeUndefined();
    const both = parse(withSignature(signed, relayer.address, relayer.sign(signed.message)));
    expect(validateSignatures(both, buyer.address)).toBeUndefined();
  });

  test("the signatures of a transaction are refused if missing, of another message, by another key, or by another key in the relayer's place", () => {
    expect(validateSignatures(unsigned, buyer.address)).toContain("is missing");
    expect(validateSignatures(signedBy(buyer.sign(Buffer.from("x"))), buyer.address)).toContain("is invalid");
    expect(validateSignatures(signedBy(makeSigner().sign(unsigned.message)), buyer.address)).toContain("is invalid");
    const forged = parse(withSignature(signed, relayer.address, buyer.sign(signed.message)));
    expect(validateSignatures(forged, buyer.address)).toBe(`the signature of ${relayer.address} is invalid`);
    expect(validateSignatures(signed, stranger)).toContain("not among the signers");
  });
});

describe("the format of a wallet's result", () => {
  const whole = Buffer.from(parse(buildPayment(transfer, budget, blockhash)).bytes);
  const signature = buyer.sign(Buffer.from("x"));

  test("the format of a wallet's result is accepted if it is base64, also of a transaction that is refused for another reason", () => {
    expect(validateResultFormat(whole.toString("base64"))).toBeUndefined();
    expect(validateResultFormat(Buffer.concat([whole, Buffer.alloc(3)]).toString("base64"))).toBeUndefined();
  });

  test.each([
    ["", "is empty"],
    [" \n", "is empty"],
    [base58.encode(signature), "a signature in base58"],
    [base58.encode(whole), "is base58, it must be base64"],
    [Buffer.from(signature).toString("base64"), "a signature alone"],
    [whole.toString("hex"), "is hex"],
    [`0x${whole.toString("hex")}`, "is hex"],
    [Buffer.from(signature).toString("hex"), "is hex"],
    [`${whole.toString("base64")}\n`, "is not base64"],
    [whole.toString("base64").replace(/.$/, ""), "is not base64"],
    [`${whole.toString("base64").slice(0, -4)}-_-_`, "is not base64"],
    ["not a transaction", "is not base64"],
    [Buffer.alloc(1300).toString("base64"), "longer than 1644"],
    ["A".repeat(1_000_000), "longer than 1644"],
    ["{}", "is not base64"],
  ])("is refused with its own reason for %j", (text, reason) => {
    expect(validateResultFormat(text)).toContain(reason);
  });

  test("the format of a wallet's result is checked without a throw for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint, maxLength: 200 }), (text) => validateResultFormat(text) !== null),
    );
  });
});
