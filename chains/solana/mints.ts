import { AccountLayout, AccountState, AccountType, ExtensionType, MintLayout } from "@solana/spl-token";
import { type TokenProgram, tokenProgramIds } from "./build-payment.ts";

/** The facts of a mint's account. `extensions` are Token-2022 extensions, by their names in the program's source. */
export type MintFacts = {
  program: TokenProgram;
  decimals: number;
  /** In the smallest unit. */
  supply: bigint;
  freezeAuthority: string | undefined;
  extensions: string[];
  /** Whether a token account of this mint starts frozen. */
  defaultsToFrozen: boolean;
};

/** The facts of a token account's data. The program is not part of the data; it is the owner of the account. */
export type TokenAccountFacts = {
  mint: string;
  owner: string;
  amount: bigint;
  frozen: boolean;
  delegate: string | undefined;
  extensions: string[];
  /** Whether the program accepts a transfer to this account only directly after a memo. */
  requiresMemo: boolean;
};

/**
 * The offset of the account type in accounts with extensions: the size of an account without any. Extensions follow it.
 */
const KIND_OFFSET = AccountLayout.span;
/** The size of a multisig account. No account with extensions has this size. */
const MULTISIG_SIZE = 355;

/**
 * The mint extensions that we accept. None of them changes the amount that arrives, moves tokens afterwards, or runs other
 * code in a transfer. docs/decisions/mint-extensions.md explains each, and the refused ones.
 */
const accepted: ReadonlySet<string> = new Set([
  "MetadataPointer",
  "TokenMetadata",
  "GroupPointer",
  "TokenGroup",
  "GroupMemberPointer",
  "TokenGroupMember",
  "MintCloseAuthority",
  "ConfidentialTransferMint",
  "DefaultAccountState",
]);

const refused: Readonly<Record<string, string>> = {
  TransferFeeConfig: "its issuer can take a fee from every transfer, so that less arrives than was sent",
  TransferHook: "its issuer can run a program in every transfer",
  PermanentDelegate: "its issuer can take tokens out of every account",
  NonTransferable: "it cannot be transferred",
  InterestBearingConfig: "wallets show another amount than is transferred",
  ScaledUiAmountConfig: "wallets show another amount than is transferred",
  PausableConfig: "its issuer can stop every transfer at once",
};

/** Reads a mint from its account. Never throws. */
export function readMint(account: { owner: string; data: Uint8Array }): MintFacts | { error: string } {
  const program = (["token", "token-2022"] as const).find((one) => tokenProgramIds[one] === account.owner);
  if (!program) return { error: "the mint's account does not belong to the Token program or Token-2022" };
  const data = Buffer.from(account.data);
  const extensions = data.length === MintLayout.span ? new Map() : readExtensions(data, AccountType.Mint);
  if (!extensions || (program === "token" && extensions.size > 0)) return { error: "the account is not a mint" };
  const mint = MintLayout.decode(data);
  if (!mint.isInitialized) return { error: "the mint is not initialized" };
  return {
    program,
    decimals: mint.decimals,
    supply: mint.supply,
    freezeAuthority: mint.freezeAuthorityOption ? mint.freezeAuthority.toBase58() : undefined,
    extensions: [...extensions.keys()],
    defaultsToFrozen:
      (extensions.get("DefaultAccountState")?.[0] ?? AccountState.Initialized) !== AccountState.Initialized,
  };
}

/** Returns why the mint's token is refused, or undefined. `expected` is the networks file's entry. */
export function validateMint(
  facts: MintFacts,
  expected: { program: TokenProgram; decimals: number },
): string | undefined {
  if (facts.program !== expected.program) return `the mint belongs to ${facts.program}, not to ${expected.program}`;
  if (facts.decimals !== expected.decimals) return `the mint has ${facts.decimals} decimals, not ${expected.decimals}`;
  const other = facts.extensions.find((name) => !accepted.has(name));
  if (other)
    return `the mint has the extension ${other}: ${refused[other] ?? "it is not on the list of accepted ones"}`;
  return facts.defaultsToFrozen ? "the mint's token accounts start frozen" : undefined;
}

/**
 * Reads the data of a token account of either program, or returns undefined if it is not an initialized one. Never
 * throws.
 */
export function readTokenAccount(bytes: Uint8Array): TokenAccountFacts | undefined {
  const data = Buffer.from(bytes);
  const extensions = data.length === AccountLayout.span ? new Map() : readExtensions(data, AccountType.Account);
  if (!extensions) return undefined;
  const account = AccountLayout.decode(data);
  if (account.state !== AccountState.Initialized && account.state !== AccountState.Frozen) return undefined;
  return {
    mint: account.mint.toBase58(),
    owner: account.owner.toBase58(),
    amount: account.amount,
    frozen: account.state === AccountState.Frozen,
    delegate: account.delegateOption ? account.delegate.toBase58() : undefined,
    extensions: [...extensions.keys()],
    requiresMemo: extensions.get("MemoTransfer")?.[0] === 1,
  };
}

/**
 * Returns why a payer's token account cannot pay the amount, or undefined. `account` is undefined if it does not exist.
 */
export function validateSourceAccount(
  account: TokenAccountFacts | undefined,
  wanted: { mint: string; owner: string; amount: bigint },
): string | undefined {
  if (!account) return "the payer has no account for the token";
  const error = validateAccount(account, wanted);
  if (error) return error;
  return account.amount < wanted.amount ? "the payer's account holds too little" : undefined;
}

/**
 * Returns why a token account cannot receive a transfer, or undefined. An associated account may have been given to another
 * owner, who would then be paid. An account that requires a memo before the transfer is refused, because our memo comes
 * after it.
 */
export function validateDestinationAccount(
  account: TokenAccountFacts,
  wanted: { mint: string; owner: string },
): string | undefined {
  const error = validateAccount(account, wanted);
  return error ?? (account.requiresMemo ? "the token account requires a memo before each transfer" : undefined);
}

function validateAccount(account: TokenAccountFacts, wanted: { mint: string; owner: string }): string | undefined {
  if (account.mint !== wanted.mint) return "the token account is of another mint";
  if (account.owner !== wanted.owner) return "the token account belongs to another owner";
  return account.frozen ? "the token account is frozen" : undefined;
}

/**
 * Reads the extensions of a Token-2022 mint or token account: type, length and value, until the type is zero or the data
 * ends. Returns undefined if the account is of another kind or an extension exceeds the data.
 */
function readExtensions(data: Buffer, kind: AccountType): Map<string, Buffer> | undefined {
  if (data.length === MULTISIG_SIZE || data[KIND_OFFSET] !== kind) return undefined;
  const extensions = new Map<string, Buffer>();
  let at = KIND_OFFSET + 1;
  while (at + 4 <= data.length) {
    const type = data.readUInt16LE(at);
    const end = at + 4 + data.readUInt16LE(at + 2);
    if (type === ExtensionType.Uninitialized) break;
    if (end > data.length) return undefined;
    extensions.set(ExtensionType[type] ?? `number ${type}`, data.subarray(at + 4, end));
    at = end;
  }
  return extensions;
}
