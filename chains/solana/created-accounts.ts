import { base58 } from "@scure/base";
import { ASSOCIATED_TOKEN_PROGRAM_ID } from "@solana/spl-token";
import { SystemProgram } from "@solana/web3.js";
import type { ParsedTransaction } from "./wire-format.ts";

const ASSOCIATED = ASSOCIATED_TOKEN_PROGRAM_ID.toBase58();
const SYSTEM = SystemProgram.programId.toBase58();
/** Instruction numbers of the System program. They are encoded as little-endian u32. */
const TRANSFER = 2;
const WITHDRAW_NONCE = 5;
const INITIALIZE_NONCE = 6;
const ALLOCATE_WITH_SEED = 9;

const ASSOCIATED_BYTES = ASSOCIATED_TOKEN_PROGRAM_ID.toBuffer();
const RENT_INSTRUCTIONS = [WITHDRAW_NONCE, ALLOCATE_WITH_SEED].map((number) => Buffer.of(number, 0, 0, 0));

/**
 * Returns false if a transaction's bytes rule out that it creates or closes an account. This is a fast check before
 * parsing: buyers' transactions rarely do either.
 */
export function mayCreateOrCloseAccounts(bytes: Uint8Array): boolean {
  const buffer = Buffer.from(bytes);
  return buffer.includes(ASSOCIATED_BYTES) || RENT_INSTRUCTIONS.some((number) => buffer.includes(number));
}

type Instructions = Pick<ParsedTransaction, "instructions" | "accounts">;

/** Returns the accounts that a transaction of ours creates if they do not exist yet, without payout markers. */
export function listCreatedAccounts(parsed: Instructions): string[] {
  const tokenAccounts = parsed.instructions.flatMap(({ program, accounts }) => {
    const created = program === ASSOCIATED ? parsed.accounts[accounts[1] ?? -1] : undefined;
    return created ? [created.address] : [];
  });
  return [...tokenAccounts, ...listAllocated(parsed).flatMap(({ address, isMarker }) => (isMarker ? [] : [address]))];
}

/** Returns the payout markers that a transaction of ours creates, and the lamports that it pays into each. */
export function listCreatedMarkers(parsed: Instructions): { address: string; lamports: bigint }[] {
  return listAllocated(parsed).flatMap(({ address, isMarker }) => {
    const paid = listSystem(parsed, TRANSFER).filter(({ accounts }) => accounts[1] === address);
    const lamports = paid.reduce((sum, { data }) => sum + Buffer.from(data).readBigUInt64LE(4), 0n);
    return isMarker ? [{ address, lamports }] : [];
  });
}

/**
 * Returns the payout markers and nonce accounts that a transaction of ours allocates. The treasury is both authority and base of a
 * marker's address, and only the authority of a nonce account.
 */
function listAllocated(parsed: Instructions): { address: string; isMarker: boolean }[] {
  const initialized = listSystem(parsed, INITIALIZE_NONCE);
  return listSystem(parsed, ALLOCATE_WITH_SEED).flatMap(({ accounts: [address, base] }) => {
    if (address === undefined) return [];
    const initialize = initialized.find(({ accounts }) => accounts[0] === address);
    const authority = initialize && base58.encode(initialize.data.subarray(4, 36));
    return [{ address, isMarker: authority === base }];
  });
}

/** Returns the payout markers that a transaction of ours closes. */
export function listClosedMarkers(parsed: Instructions): string[] {
  return listSystem(parsed, WITHDRAW_NONCE).flatMap(({ accounts: [address] }) => address ?? []);
}

function listSystem(parsed: Instructions, number: number): { accounts: (string | undefined)[]; data: Uint8Array }[] {
  return parsed.instructions
    .filter(({ program, data }) => program === SYSTEM && data[0] === number)
    .map(({ accounts, data }) => ({ accounts: accounts.map((at) => parsed.accounts[at]?.address), data }));
}
