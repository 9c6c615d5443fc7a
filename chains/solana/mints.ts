import { AccountLayout, AccountState, AccountType, ExtensionType, MintLayout } from "@solana/spl-token";
import { type TokenProgram, tokenPrograms } from "./payment.ts";

/** What a mint's account says. `extensions` are Token-2022's, by the names of the program's own source. */
export type MintFacts = {
  program: TokenProgram;
  decimals: number;
  /** In the smallest unit. */
  supply: bigint;
  freezeAuthority: string | undefined;
  extensions: string[];
  /** Whether a token account of this mint starts frozen. */
  startsFrozen: boolean;
};

/** What a token account's data says; which program it belongs to stands beside the data, in the account's owner. */
export type TokenAccountFacts = {
  mint: string;
  owner: string;
  amount: bigint;
  frozen: boolean;
  delegate: string | undefined;
  extensions: string[];
  /** Whether the program takes a transfer to this account only directly behind a memo. */
  memoRequired: boolean;
};

/** Token-2022 puts the kind of account where an account without extensions ends, and extensions behind it. */
const KIND_AT = AccountLayout.span;
/** A multisig's size, which no account with extensions has. */
const MULTISIG_SIZE = 355;

/**
 * The extensions of a mint that we accept: none of them changes what arrives, moves what has arrived, or runs code of
 * others in a transfer. docs/decisions/mint-extensions.md speaks of each, and of those that are missing here.
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
  TransferHook: "its issuer can have a program run in every transfer",
  PermanentDelegate: "its issuer can take tokens out of every account",
  NonTransferable: "it cannot be transferred",
  InterestBearingConfig: "wallets show another amount than is transferred",
  ScaledUiAmountConfig: "wallets show another amount than is transferred",
  PausableConfig: "its issuer can stop every transfer at once",
};

/** Reads a mint as its account's owner and data are. Never throws. */
export function readMint(account: { owner: string; data: Uint8Array }): MintFacts | { fault: string } {
  const program = (["token", "token-2022"] as const).find((one) => tokenPrograms[one].toBase58() === account.owner);
  if (!program) return { fault: "the mint's account does not belong to the Token program or Token-2022" };
  const data = Buffer.from(account.data);
  const extensions = data.length === MintLayout.span ? new Map() : readExtensions(data, AccountType.Mint);
  if (!extensions || (program === "token" && extensions.size > 0)) return { fault: "the account is not a mint" };
  const mint = MintLayout.decode(data);
  if (!mint.isInitialized) return { fault: "the mint is not initialized" };
  return {
    program,
    decimals: mint.decimals,
    supply: mint.supply,
    freezeAuthority: mint.freezeAuthorityOption ? mint.freezeAuthority.toBase58() : undefined,
    extensions: [...extensions.keys()],
    startsFrozen: (extensions.get("DefaultAccountState")?.[0] ?? AccountState.Initialized) !== AccountState.Initialized,
  };
}

/** Why we do not take this mint's token, which the networks file says is of this program and has these decimals. */
export function findMintFault(
  facts: MintFacts,
  expected: { program: TokenProgram; decimals: number },
): string | undefined {
  if (facts.program !== expected.program) return `the mint belongs to ${facts.program}, not to ${expected.program}`;
  if (facts.decimals !== expected.decimals) return `the mint has ${facts.decimals} decimals, not ${expected.decimals}`;
  const bad = facts.extensions.find((name) => !accepted.has(name));
  if (bad) return `the mint has the extension ${bad}: ${refused[bad] ?? "it is not among those that we accept"}`;
  return facts.startsFrozen ? "the mint's token accounts start frozen" : undefined;
}

/** Reads a token account's data, of either program; undefined when it is none or not initialized. Never throws. */
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
    memoRequired: extensions.get("MemoTransfer")?.[0] === 1,
  };
}

/** Why a payer's account cannot pay this amount; an account that is not there holds nothing. */
export function findSourceFault(
  account: TokenAccountFacts | undefined,
  wanted: { mint: string; owner: string; amount: bigint },
): string | undefined {
  if (!account) return "the payer has no account for the token";
  const held = findAccountFault(account, wanted);
  if (held) return held;
  return account.amount < wanted.amount ? "the payer's account holds too little" : undefined;
}

/**
 * Why an account cannot be paid into. An associated account can have been handed to another owner, who would be paid;
 * and our memo stands behind the transfer, where it does not help an account that asks for one before it.
 */
export function findDestinationFault(
  account: TokenAccountFacts,
  wanted: { mint: string; owner: string },
): string | undefined {
  const fault = findAccountFault(account, wanted);
  return fault ?? (account.memoRequired ? "the token account asks for a memo before each transfer" : undefined);
}

function findAccountFault(account: TokenAccountFacts, wanted: { mint: string; owner: string }): string | undefined {
  if (account.mint !== wanted.mint) return "the token account is of another mint";
  if (account.owner !== wanted.owner) return "the token account belongs to another owner";
  return account.frozen ? "the token account is frozen" : undefined;
}

/**
 * The extensions behind a mint or a token account of Token-2022: type, length, value, until the type is zero or nothing
 * is left. Undefined when the data is not of that kind or an extension ends behind the data.
 */
function readExtensions(data: Buffer, kind: AccountType): Map<string, Buffer> | undefined {
  if (data.length === MULTISIG_SIZE || data[KIND_AT] !== kind) return undefined;
  const extensions = new Map<string, Buffer>();
  let at = KIND_AT + 1;
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
