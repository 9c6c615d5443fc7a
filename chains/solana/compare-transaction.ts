import { base58 } from "@scure/base";
import { TokenInstruction } from "@solana/spl-token";
import { PACKET_DATA_SIZE } from "@solana/web3.js";
import { cleanText } from "../../runtime/clean-text.ts";
import {
  ASSOCIATED_PROGRAM,
  type DescribedInstruction,
  describeTransfer,
  findTokenAccount,
  MEMO_PROGRAM,
  MEMO_PROGRAM_1,
  type SplTransfer,
  SYSTEM_PROGRAM,
  tokenProgramIds,
} from "./build-payment.ts";
import { verifyWithKey } from "./ed25519-keys.ts";
import { LIGHTHOUSE_PROGRAM, validateGuards } from "./lighthouse-guards.ts";
import { BUDGET_PROGRAM, type PlainInstruction, validateComputeBudget } from "./wallet-instructions.ts";
import { type ParsedTransaction, parseTransaction, SIGNATURE_BYTES } from "./wire-format.ts";

export type CompareLimits = {
  /** Maximum priority fee (compute units times price), in lamports. */
  maxFee: bigint;
  /** Our own accounts: the treasury, its token accounts and the relayers. */
  ours: ReadonlySet<string>;
};

const { token: TOKEN, "token-2022": TOKEN_2022 } = tokenProgramIds;

type Kind = "transfer" | "creation" | "memo";
const kindNames: Record<Kind, string> = {
  transfer: "TransferChecked instruction",
  creation: "instruction that makes a token account",
  memo: "memo",
};

/**
 * Compares the transaction that a wallet returned with the one that we built, and returns every reason to refuse it, in
 * words for the wallet's developers. An empty list accepts it. The comparison is an allow-list: a wallet may set its own
 * compute budget under the cap, add up to four Lighthouse guards, change the blockhash, and use the legacy format. Any
 * other difference is a reason. `validateSignatures` checks the signatures.
 *
 * Our relayer signs the whole transaction, so our addresses may appear only where we put them.
 */
export function compareTransaction(parsed: ParsedTransaction, expected: SplTransfer, limits: CompareLimits): string[] {
  const isProtected = (address: string) => address === expected.feePayer || limits.ours.has(address);
  const instructions = parsed.instructions.map((one, index) => ({
    number: index + 1,
    program: one.program,
    accounts: one.accounts.map((at) => parsed.accounts[at]?.address ?? `entry ${at} of a lookup table`),
    data: one.data,
  }));
  const of = (program: string) => instructions.filter((one) => one.program === program);
  const [budget, guards] = [of(BUDGET_PROGRAM), of(LIGHTHOUSE_PROGRAM)];
  const rest = instructions.filter((one) => !budget.includes(one) && !guards.includes(one));
  const ours = describeTransfer(expected);
  const built = ours.map(({ program, accounts, data }, index) => ({
    number: index + 1,
    program,
    accounts: accounts.map(({ address }) => address),
    data,
  }));
  return [
    ...validateSigners(parsed, expected, limits),
    ...validateComputeBudget(budget, instructions.length - budget.length, limits.maxFee),
    ...validateGuards(guards, expected.feePayer),
    ...validateInstructions(rest, built, isProtected),
    ...validateAccounts(parsed, expected, ours, isProtected),
  ];
}

/** Checks the fee payer, the signers, and that no account is hidden in a lookup table. */
function validateSigners(parsed: ParsedTransaction, expected: SplTransfer, { ours }: CompareLimits): string[] {
  const { feePayer, payer, mint, program } = expected;
  const reasons: string[] = [];
  if (parsed.lookupTables > 0) reasons.push("the transaction uses address lookup tables");
  if (parsed.feePayer !== feePayer) reasons.push(`the fee payer is ${parsed.feePayer}, we built it with ${feePayer}`);
  for (const signer of parsed.signers) {
    if (signer !== feePayer && signer !== payer) reasons.push(`${signer} must not sign`);
  }
  if (!parsed.signers.includes(payer)) reasons.push(`the payer ${payer} does not sign`);
  if (payer === feePayer || ours.has(payer) || ours.has(findTokenAccount(payer, mint, program))) {
    reasons.push(`the payer ${payer} is an account of ours`);
  }
  return reasons;
}

/** Checks that the instructions besides budget and guards are exactly the ones that we built, in the same order. */
function validateInstructions(
  rest: readonly PlainInstruction[],
  built: readonly PlainInstruction[],
  isProtected: (address: string) => boolean,
): string[] {
  const reasons: string[] = [];
  for (const one of rest.filter((it) => !kindOf(it))) {
    reasons.push(`instruction ${one.number} is ${nameOf(one)}, which we did not build`);
    for (const address of new Set(one.accounts.filter(isProtected))) {
      reasons.push(`instruction ${one.number} names ${address}, which is the fee payer or an account of ours`);
    }
  }
  for (const kind of ["creation", "transfer", "memo"] as const) {
    const found = rest.filter((one) => kindOf(one) === kind);
    const ours = built.filter((one) => kindOf(one) === kind);
    if (found.length !== ours.length) {
      reasons.push(`there are ${found.length} of "${kindNames[kind]}", we built ${ours.length}`);
    }
    for (const one of found) {
      for (const wanted of ours) reasons.push(...explain(kind, one, wanted));
    }
  }
  const order = (list: readonly PlainInstruction[]) => list.map(kindOf).join();
  if (reasons.length === 0 && order(rest) !== order(built)) reasons.push("our instructions are in another order");
  return reasons;
}

function kindOf({ program, data }: PlainInstruction): Kind | undefined {
  const isTransfer = data[0] === TokenInstruction.TransferChecked;
  if (program === TOKEN || program === TOKEN_2022) return isTransfer ? "transfer" : undefined;
  if (program === ASSOCIATED_PROGRAM) return "creation";
  return program === MEMO_PROGRAM || program === MEMO_PROGRAM_1 ? "memo" : undefined;
}

const accountNames: Record<Kind, string[]> = {
  transfer: ["source token account", "mint", "destination token account", "authority"],
  creation: ["payer", "token account", "owner", "mint", "System program", "token program"],
  memo: [],
};

/** Returns how an instruction differs from the one of the same kind that we built. */
function explain(kind: Kind, found: PlainInstruction, built: PlainInstruction): string[] {
  const reasons: string[] = [];
  const at = `instruction ${found.number}, the ${kindNames[kind]},`;
  if (found.program !== built.program) reasons.push(`${at} calls ${found.program}, we built it for ${built.program}`);
  if (found.accounts.length !== built.accounts.length) {
    reasons.push(`${at} names ${found.accounts.length} accounts, we built it with ${built.accounts.length}`);
  }
  for (const [index, address] of built.accounts.entries()) {
    const other = found.accounts[index];
    if (other !== undefined && other !== address) {
      reasons.push(`${at} has ${other} as its ${accountNames[kind][index]}, we built it with ${address}`);
    }
  }
  if (Buffer.compare(found.data, built.data) !== 0) reasons.push(`${at} ${explainData(kind, found.data, built.data)}`);
  return reasons;
}

function explainData(kind: Kind, found: Uint8Array, built: Uint8Array): string {
  if (kind === "memo") return `says ${quote(found)}, we built it with ${quote(built)}`;
  if (kind === "creation") return "is not CreateIdempotent";
  if (found.length !== built.length) return `has ${found.length} bytes of data, we built it with ${built.length}`;
  const read = (data: Uint8Array) => `${Buffer.from(data).readBigUInt64LE(1)} with ${data[9]} decimals`;
  return `moves ${read(found)}, we built it with ${read(built)}`;
}

/** Returns the memo as quoted text on one line. */
function quote(data: Uint8Array): string {
  return cleanText(JSON.stringify(Buffer.from(data).toString("utf8")), 100);
}

const systemNames = [
  "CreateAccount",
  "Assign",
  "Transfer",
  "CreateAccountWithSeed",
  "AdvanceNonceAccount",
  "WithdrawNonceAccount",
  "InitializeNonceAccount",
  "AuthorizeNonceAccount",
  "Allocate",
  "AllocateWithSeed",
  "AssignWithSeed",
  "TransferWithSeed",
  "UpgradeNonceAccount",
];

function nameOf({ program, data }: PlainInstruction): string {
  const number = data[0] ?? -1;
  if (program === SYSTEM_PROGRAM) return `${systemNames[number] ?? "an instruction"} of the System program`;
  if (program === TOKEN) return `${TokenInstruction[number] ?? "an instruction"} of the Token program`;
  if (program === TOKEN_2022) return `${TokenInstruction[number] ?? "an instruction"} of Token-2022`;
  return `a call of ${program}`;
}

/** Checks that each account is listed once, is used, and is writable only where we made it writable. */
function validateAccounts(
  parsed: ParsedTransaction,
  expected: SplTransfer,
  built: readonly DescribedInstruction[],
  isProtected: (address: string) => boolean,
): string[] {
  const reasons: string[] = [];
  const metas = built.flatMap((one) => [
    ...one.accounts.map(({ address, isWritable }) => ({ address, writable: isWritable })),
    { address: one.program, writable: false },
  ]);
  const placed = new Set([expected.feePayer, ...metas.map((meta) => meta.address)]);
  const written = new Set([expected.feePayer, ...metas.filter((meta) => meta.writable).map((meta) => meta.address)]);
  const used = new Set(parsed.instructions.flatMap((one) => one.accounts.map((at) => parsed.accounts[at]?.address)));
  const programs = new Set(parsed.instructions.map((one) => one.program));
  const seen = new Set<string>();
  for (const { address, writable } of parsed.accounts) {
    if (seen.has(address)) reasons.push(`${address} is listed twice`);
    seen.add(address);
    if (address !== parsed.feePayer && !used.has(address) && !programs.has(address)) {
      reasons.push(`${address} is listed and no instruction uses it`);
    }
    if (isProtected(address) && !placed.has(address)) reasons.push(`${address} is ours and has no place here`);
    if (written.has(address) && !writable) reasons.push(`${address} has to be writable`);
    // A writable payer is harmless: the wallet decides what happens to the payer's own account.
    if (writable && !written.has(address) && address !== expected.payer)
      reasons.push(`${address} must not be writable`);
  }
  return reasons;
}

/**
 * Returns why the signatures are refused: the payer's signature is missing or invalid, or another signature is invalid.
 * Other signatures may be missing, because the relayer signs later.
 */
export function validateSignatures(parsed: ParsedTransaction, payer: string): string | undefined {
  if (!parsed.signers.includes(payer)) return `the payer ${payer} is not among the signers`;
  for (const [index, signer] of parsed.signers.entries()) {
    const signature = parsed.signatures[index] ?? new Uint8Array();
    const key = parsed.signerKeys[index];
    const empty = signature.every((byte) => byte === 0);
    if (empty && signer === payer) return `the signature of the payer ${payer} is missing`;
    if (!empty && !(key && verifyWithKey(key, parsed.message, signature)))
      return `the signature of ${signer} is invalid`;
  }
  return undefined;
}

/** Maximum length of a transaction in base64, in base58 (log 256 / log 58 digits per byte) and in hex. */
const MAX_BASE64_LENGTH = Math.ceil(PACKET_DATA_SIZE / 3) * 4;
const MAX_BASE58_LENGTH = Math.ceil(PACKET_DATA_SIZE * 1.3658);
const MAX_HEX_LENGTH = PACKET_DATA_SIZE * 2 + 2;

/**
 * Returns why a result cannot be a signed transaction in base64, or undefined if it can be one. Some wallets return base58,
 * hex, or only the signature.
 */
export function validateResultFormat(text: string): string | undefined {
  const tooLong = `the result is longer than ${MAX_BASE64_LENGTH} characters`;
  if (text.trim() === "") return "the result is empty";
  if (text.length > MAX_HEX_LENGTH) return tooLong;
  if (/^(0x)?([0-9a-fA-F]{2})+$/.test(text)) return "the result is hex, it must be base64";
  const bytes = text.length <= MAX_BASE58_LENGTH && isBase58(text) ? base58.decode(text) : undefined;
  if (bytes?.length === SIGNATURE_BYTES) {
    return "the result is a signature in base58, it must be the whole transaction in base64";
  }
  if (bytes && !("error" in parseTransaction(bytes))) return "the result is base58, it must be base64";
  if (text.length > MAX_BASE64_LENGTH) return tooLong;
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return "the result is not base64";
  const detached = Buffer.from(text, "base64").length === SIGNATURE_BYTES;
  return detached ? "the result is a signature alone, it must be the whole transaction" : undefined;
}

function isBase58(text: string): boolean {
  return /^[1-9A-HJ-NP-Za-km-z]+$/.test(text);
}
