import { AccountLayout, AccountState, ExtensionType, MintLayout } from "@solana/spl-token";
import { PublicKey, SystemProgram } from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tokenPrograms } from "../../../../chains/solana/build-payment.ts";
import {
  readMint,
  readTokenAccount,
  validateDestinationAccount,
  validateMint,
  validateSourceAccount,
} from "../../../../chains/solana/mints.ts";
import { buyer, makeAddress, mint, treasury } from "./solana-fixtures.ts";

const TOKEN = tokenPrograms.token.toBase58();
const TOKEN_2022 = tokenPrograms["token-2022"].toBase58();
const freezer = makeAddress();

/** Returns the data of a mint or token account with extensions, which follow the account type at byte 165. */
function withExtensions(base: Uint8Array, kind: number, extensions: [number, number[]][]): Buffer {
  const head = Buffer.alloc(166);
  head.set(base);
  head[165] = kind;
  const entries = extensions.map(([type, value]) => {
    const entry = Buffer.alloc(4 + value.length);
    entry.writeUInt16LE(type, 0);
    entry.writeUInt16LE(value.length, 2);
    entry.set(value, 4);
    return entry;
  });
  return Buffer.concat([head, ...entries]);
}

function mintData(changes: object = {}): Buffer {
  const data = Buffer.alloc(MintLayout.span);
  MintLayout.encode(
    {
      mintAuthorityOption: 1,
      mintAuthority: new PublicKey(freezer),
      supply: 2n ** 64n - 1n,
      decimals: 6,
      isInitialized: true,
      freezeAuthorityOption: 1,
      freezeAuthority: new PublicKey(freezer),
      ...changes,
    },
    data,
  );
  return data;
}

function accountData(changes: object = {}): Buffer {
  const data = Buffer.alloc(AccountLayout.span);
  AccountLayout.encode(
    {
      mint: new PublicKey(mint),
      owner: new PublicKey(treasury),
      amount: 5n,
      delegateOption: 0,
      delegate: PublicKey.default,
      state: AccountState.Initialized,
      isNativeOption: 0,
      isNative: 0n,
      delegatedAmount: 0n,
      closeAuthorityOption: 0,
      closeAuthority: PublicKey.default,
      ...changes,
    },
    data,
  );
  return data;
}

const read2022 = (...extensions: [number, number[]][]) =>
  readMint({ owner: TOKEN_2022, data: withExtensions(mintData(), 1, extensions) });

/** Returns why a Token-2022 mint with these extensions is refused. */
function refusalOf(...extensions: [number, number[]][]): string | undefined {
  const facts = read2022(...extensions);
  return "error" in facts ? facts.error : validateMint(facts, { program: "token-2022", decimals: 6 });
}

/** USDC's mint on mainnet, except for the supply. */
const usdc = Buffer.from(
  "0100000098fe86e88d9be2ea8bc1cca4878b2988c240f52b8424bfb40ed1a2ddcb5e199b" +
    "0000000000000000060101000000" +
    "6270aa8a59c59405b45286c86772e6cd126e9b8a5d3a38536d37f7b414e8b667",
  "hex",
);

describe("a mint", () => {
  test("a mint of the Token program is read with its decimals, supply and freeze authority", () => {
    expect(readMint({ owner: TOKEN, data: mintData() })).toEqual({
      program: "token",
      decimals: 6,
      supply: 2n ** 64n - 1n,
      freezeAuthority: freezer,
      extensions: [],
      defaultsToFrozen: false,
    });
    expect(readMint({ owner: TOKEN, data: mintData({ freezeAuthorityOption: 0 }) })).toMatchObject({
      freezeAuthority: undefined,
    });
  });

  test("a mint with a freeze authority, such as USDC, is accepted", () => {
    const facts = readMint({ owner: TOKEN, data: usdc });
    if ("error" in facts) throw new Error(facts.error);
    expect(facts.freezeAuthority).toBe("7dGbd2QZcCKcTndnHcTL8q7SMVXAkp688NTQYwrRCrar");
    expect(validateMint(facts, { program: "token", decimals: 6 })).toBeUndefined();
  });

  test("a mint whose program or decimals differ from the networks file is refused", () => {
    const facts = readMint({ owner: TOKEN, data: mintData() });
    if ("error" in facts) throw new Error(facts.error);
    expect(validateMint(facts, { program: "token-2022", decimals: 6 })).toContain(
      "belongs to token, not to token-2022",
    );
    expect(validateMint(facts, { program: "token", decimals: 9 })).toContain("6 decimals, not 9");
  });

  test("a mint of Token-2022 without extensions is accepted, with and without an account type", () => {
    expect(readMint({ owner: TOKEN_2022, data: mintData() })).toMatchObject({ program: "token-2022", extensions: [] });
    expect(refusalOf()).toBeUndefined();
  });

  const harmless: [string, number, number[]][] = [
    ["MetadataPointer", ExtensionType.MetadataPointer, Array(64).fill(0)],
    ["TokenMetadata", ExtensionType.TokenMetadata, Array(300).fill(65)],
    ["GroupPointer", ExtensionType.GroupPointer, Array(64).fill(0)],
    ["TokenGroup", ExtensionType.TokenGroup, Array(72).fill(0)],
    ["GroupMemberPointer", ExtensionType.GroupMemberPointer, Array(64).fill(0)],
    ["TokenGroupMember", ExtensionType.TokenGroupMember, Array(72).fill(0)],
    ["MintCloseAuthority", ExtensionType.MintCloseAuthority, Array(32).fill(1)],
    ["ConfidentialTransferMint", ExtensionType.ConfidentialTransferMint, Array(65).fill(1)],
    ["DefaultAccountState", ExtensionType.DefaultAccountState, [1]],
  ];

  test.each(harmless)("a mint with %s is accepted", (name, type, value) => {
    expect(read2022([type, value])).toMatchObject({ extensions: [name] });
    expect(refusalOf([type, value])).toBeUndefined();
  });

  test("a mint with all harmless extensions is accepted, and padding after them is not an extension", () => {
    const all = harmless.map(([, type, value]): [number, number[]] => [type, value]);
    expect(refusalOf(...all)).toBeUndefined();
    const padded = Buffer.concat([withExtensions(mintData(), 1, all), Buffer.alloc(2)]);
    expect(readMint({ owner: TOKEN_2022, data: padded })).toMatchObject({ extensions: harmless.map(([name]) => name) });
    const longPadding = Buffer.concat([withExtensions(mintData(), 1, all), Buffer.alloc(40)]);
    expect(readMint({ owner: TOKEN_2022, data: longPadding })).toMatchObject({
      extensions: harmless.map(([name]) => name),
    });
  });

  test("a mint whose token accounts start frozen is refused", () => {
    expect(refusalOf([ExtensionType.DefaultAccountState, [2]])).toBe("the mint's token accounts start frozen");
  });

  test("a mint with any extension that is not on the list is refused, with the extension's name or number", () => {
    const accepted = new Set(harmless.map(([, type]) => type));
    for (let type = 1; type < 64; type++) {
      if (accepted.has(type)) continue;
      const name = ExtensionType[type] ?? `number ${type}`;
      expect(refusalOf([ExtensionType.MetadataPointer, []], [type, [0]])).toContain(`has the extension ${name}: `);
    }
  });

  test.each([
    ["TransferFeeConfig", "take a fee"],
    ["TransferHook", "run a program in every transfer"],
    ["PermanentDelegate", "take tokens out of every account"],
    ["NonTransferable", "cannot be transferred"],
    ["InterestBearingConfig", "another amount"],
    ["ScaledUiAmountConfig", "another amount"],
    ["PausableConfig", "stop every transfer"],
    ["PermissionedBurn", "not on the list of accepted ones"],
  ] as const)("with %s is refused with a reason", (name, reason) => {
    expect(refusalOf([ExtensionType[name], Array(40).fill(0)])).toContain(reason);
  });

  test.each<[string, string, Uint8Array]>([
    ["of another program", SystemProgram.programId.toBase58(), mintData()],
    ["that is not initialized", TOKEN, mintData({ isInitialized: false })],
    ["cut short", TOKEN, mintData().subarray(0, 81)],
    ["of nothing", TOKEN_2022, new Uint8Array()],
    ["that is a token account", TOKEN_2022, withExtensions(accountData(), 2, [[8, [1]]])],
    ["that is a short token account", TOKEN, accountData()],
    ["of the Token program with extensions", TOKEN, withExtensions(mintData(), 1, [[18, [1]]])],
    ["of a multisig's size", TOKEN_2022, withExtensions(mintData(), 1, [[19, Array(185).fill(1)]])],
    ["whose extension exceeds the data", TOKEN_2022, withExtensions(mintData(), 1, [[19, [1, 2]]]).subarray(0, -1)],
  ])("%s is refused", (_, owner, data) => {
    expect(readMint({ owner, data })).toHaveProperty("error");
  });

  test("reading any bytes as a mint or a token account throws nothing", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.constantFrom(0, 1, 2), (bytes, kind) => {
        if (bytes.length > 165) bytes[165] = kind;
        readMint({ owner: TOKEN_2022, data: bytes });
        readTokenAccount(bytes);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("a token account", () => {
  const facts = (changes: object = {}) => {
    const read = readTokenAccount(accountData(changes));
    if (!read) throw new Error("no token account");
    return read;
  };

  test("a token account is read with its mint, owner, amount and delegate", () => {
    expect(facts({ amount: 2n ** 64n - 1n, delegateOption: 1, delegate: new PublicKey(freezer) })).toEqual({
      mint,
      owner: treasury,
      amount: 2n ** 64n - 1n,
      frozen: false,
      delegate: freezer,
      extensions: [],
      requiresMemo: false,
    });
    expect(facts().delegate).toBeUndefined();
  });

  test("a token account of Token-2022 is read with its extensions and whether it requires a memo", () => {
    const data = withExtensions(accountData(), 2, [
      [ExtensionType.ImmutableOwner, []],
      [ExtensionType.MemoTransfer, [1]],
    ]);
    expect(readTokenAccount(data)).toMatchObject({
      extensions: ["ImmutableOwner", "MemoTransfer"],
      requiresMemo: true,
    });
    const turnedOff = withExtensions(accountData(), 2, [[ExtensionType.MemoTransfer, [0]]]);
    expect(readTokenAccount(turnedOff)).toMatchObject({ requiresMemo: false });
  });

  test("a token account that is not initialized, is cut short, or is a mint or a multisig, is refused", () => {
    expect(readTokenAccount(accountData({ state: AccountState.Uninitialized }))).toBeUndefined();
    expect(readTokenAccount(accountData({ state: 3 }))).toBeUndefined();
    expect(readTokenAccount(accountData().subarray(0, 164))).toBeUndefined();
    expect(readTokenAccount(mintData())).toBeUndefined();
    expect(readTokenAccount(withExtensions(mintData(), 1, []))).toBeUndefined();
    expect(readTokenAccount(Buffer.alloc(355, 2))).toBeUndefined();
  });

  const wanted = { mint, owner: treasury, amount: 5n };

  test("a token account with enough tokens can pay, and with one unit too few cannot", () => {
    expect(validateSourceAccount(facts(), wanted)).toBeUndefined();
    expect(validateSourceAccount(facts(), { ...wanted, amount: 6n })).toContain("holds too little");
    expect(validateSourceAccount(undefined, wanted)).toContain("no account for the token");
  });

  test("a token account that is frozen, of another mint, or of another owner can neither pay nor receive", () => {
    const cases: [object, string][] = [
      [{ state: AccountState.Frozen }, "is frozen"],
      [{ mint: new PublicKey(freezer) }, "of another mint"],
      [{ owner: new PublicKey(buyer.address) }, "belongs to another owner"],
    ];
    for (const [changes, reason] of cases) {
      expect(validateSourceAccount(facts(changes), wanted)).toContain(reason);
      expect(validateDestinationAccount(facts(changes), wanted)).toContain(reason);
    }
  });

  test("a token account that requires a memo before a transfer can pay but not receive", () => {
    const account = { ...facts(), requiresMemo: true };
    expect(validateSourceAccount(account, wanted)).toBeUndefined();
    expect(validateDestinationAccount(account, wanted)).toContain("requires a memo");
    expect(validateDestinationAccount(facts(), wanted)).toBeUndefined();
  });
});
