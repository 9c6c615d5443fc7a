import { ASSOCIATED_TOKEN_PROGRAM_ID } from "@solana/spl-token";
import { SystemProgram } from "@solana/web3.js";
import type { ParsedTransaction } from "./transactions.ts";

const ASSOCIATED = ASSOCIATED_TOKEN_PROGRAM_ID.toBase58();
const SYSTEM = SystemProgram.programId.toBase58();
/** CreateAccountWithSeed of the System program, by its little-endian number. */
const CREATE_WITH_SEED = 3;

const ASSOCIATED_BYTES = ASSOCIATED_TOKEN_PROGRAM_ID.toBuffer();
const SEED_CREATION = Buffer.of(CREATE_WITH_SEED, 0, 0, 0);

/** False when a look at a transaction's bytes shows already that it makes no account: those of buyers never do. */
export function mayCreate(bytes: Buffer): boolean {
  return bytes.includes(ASSOCIATED_BYTES) || bytes.includes(SEED_CREATION);
}

/** The accounts that a transaction of ours makes, unless they are there already. */
export function listCreated(parsed: Pick<ParsedTransaction, "instructions" | "accounts">): string[] {
  return parsed.instructions.flatMap(({ program, data, accounts }) => {
    const makes = program === ASSOCIATED || (program === SYSTEM && data[0] === CREATE_WITH_SEED);
    const made = makes ? parsed.accounts[accounts[1] ?? -1] : undefined;
    return made ? [made.address] : [];
  });
}
