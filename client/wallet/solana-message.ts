import { encodeBase58 } from "./base58.ts";

/** An instruction of a message; accounts are indexes of the message's accounts. */
export type SolanaInstruction = { program: string; accounts: readonly number[]; data: Uint8Array };

/** A transaction on the wire, and the message that its signers sign. */
export type SolanaTransaction = {
  /** Where the signatures begin in the bytes; each has 64 bytes. */
  signaturesAt: number;
  message: Uint8Array<ArrayBuffer>;
  /** The number of accounts, from the first on, that have to sign. The first pays the fee. */
  signers: number;
  accounts: readonly string[];
  instructions: readonly SolanaInstruction[];
};

/**
 * Reads a legacy or version 0 transaction. Throws RangeError for one that is cut off, has bytes left over, or takes accounts
 * from lookup tables: their addresses are not in the transaction.
 */
export function readSolanaTransaction(bytes: Uint8Array): SolanaTransaction {
  const reader = createReader(bytes);
  const signatures = reader.length();
  const signaturesAt = reader.position();
  reader.take(64 * signatures);
  const messageAt = reader.position();
  const [first = 0] = reader.take(1);
  const isVersioned = first >= 128;
  if (isVersioned && first !== 128) throw new RangeError("the version of the transaction is unknown");
  const [signers = 0] = isVersioned ? reader.take(1) : [first];
  reader.take(2);
  if (signers !== signatures) throw new RangeError("the transaction has another number of signatures than signers");
  const accounts = Array.from({ length: reader.length() }, () => encodeBase58(reader.take(32)));
  reader.take(32);
  const instructions = Array.from({ length: reader.length() }, () => {
    const program = accounts[reader.take(1)[0] ?? 0] ?? "";
    const indexes = [...reader.take(reader.length())];
    if (indexes.some((index) => index >= accounts.length))
      throw new RangeError("an instruction has an unknown account");
    return { program, accounts: indexes, data: reader.take(reader.length()) };
  });
  if (isVersioned && reader.length() !== 0) throw new RangeError("the transaction uses lookup tables");
  if (reader.position() !== bytes.length) throw new RangeError("bytes follow the transaction");
  return { signaturesAt, message: new Uint8Array(bytes.subarray(messageAt)), signers, accounts, instructions };
}

function createReader(bytes: Uint8Array) {
  let at = 0;
  const take = (count: number): Uint8Array => {
    if (at + count > bytes.length) throw new RangeError("the transaction is cut off");
    at += count;
    return bytes.subarray(at - count, at);
  };
  return {
    take,
    position: () => at,
    /** Reads a length in Solana's compact form: 7 bits in each byte, the lowest first. */
    length(): number {
      let value = 0;
      for (let shift = 0; shift < 21; shift += 7) {
        const [byte = 0] = take(1);
        value |= (byte & 127) << shift;
        if (byte < 128) return value;
      }
      throw new RangeError("a length of the transaction is not readable");
    },
  };
}
