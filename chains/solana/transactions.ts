import { base58 } from "@scure/base";
import { type Message, type MessageV0, PACKET_DATA_SIZE, VersionedMessage } from "@solana/web3.js";

/** A transaction as its bytes say it is; nothing is put in order or left out. `accounts` are the static ones. */
export type ParsedTransaction = {
  bytes: Uint8Array;
  /** What is signed. */
  message: Uint8Array;
  /** 64 bytes each, in the order of `signers`; zeros where nobody has signed yet. */
  signatures: Uint8Array[];
  signers: string[];
  feePayer: string;
  blockhash: string;
  accounts: ParsedAccount[];
  /** `accounts` are indexes into the transaction's; with lookup tables they may point behind the static ones. */
  instructions: { program: string; accounts: number[]; data: Uint8Array }[];
  lookupTables: number;
};

export type ParsedAccount = { address: string; signer: boolean; writable: boolean };

export const SIGNATURE_BYTES = 64;

/**
 * Reads the wire form of a transaction, legacy or version 0, of at most 1232 bytes. What does not come out as the same
 * bytes when written again is refused, and so is what a validator would refuse unread: counts that do not fit the header,
 * indexes that point at nothing. Never throws.
 */
export function parseTransaction(bytes: Uint8Array): ParsedTransaction | { fault: string } {
  if (bytes.length === 0) return { fault: "the transaction is empty" };
  if (bytes.length > PACKET_DATA_SIZE) {
    return { fault: `the transaction has ${bytes.length} bytes, the network takes ${PACKET_DATA_SIZE}` };
  }
  // The count of signatures is a compact-u16: one byte below 128, and 1232 bytes have room for 19 of them.
  const count = bytes[0] ?? 0;
  const messageBytes = bytes.subarray(1 + SIGNATURE_BYTES * count);
  const message = readMessage(messageBytes);
  if (!message) return { fault: "the bytes are not a legacy or version 0 transaction" };
  const { header } = message;
  if (count !== header.numRequiredSignatures) {
    return { fault: `the transaction has ${count} signatures, its header says ${header.numRequiredSignatures}` };
  }
  const accounts = message.staticAccountKeys.map((key, index) => ({
    address: nameOf(key.toBytes()),
    signer: index < header.numRequiredSignatures,
    writable: message.isAccountWritable(index),
  }));
  const feePayer = accounts[0]?.address;
  const readonlyAtEnd = header.numRequiredSignatures + header.numReadonlyUnsignedAccounts;
  if (
    !feePayer ||
    header.numReadonlySignedAccounts >= header.numRequiredSignatures ||
    readonlyAtEnd > accounts.length
  ) {
    return { fault: "the transaction's header does not fit its accounts" };
  }
  const lookups = message.addressTableLookups;
  const looked = lookups.reduce((sum, table) => sum + table.writableIndexes.length + table.readonlyIndexes.length, 0);
  const instructions = [];
  for (const { programIdIndex, accountKeyIndexes, data } of message.compiledInstructions) {
    const program = accounts[programIdIndex]?.address;
    // The fee payer cannot be a program, and a program does not come out of a lookup table (the runtime's own rules).
    if (!program || programIdIndex === 0 || accountKeyIndexes.some((index) => index >= accounts.length + looked)) {
      return { fault: "an instruction of the transaction points at an account that is not there" };
    }
    instructions.push({ program, accounts: [...accountKeyIndexes], data: Uint8Array.from(data) });
  }
  return {
    bytes,
    message: messageBytes,
    signatures: Array.from({ length: count }, (_, place) => signatureAt(bytes, place)),
    signers: accounts.filter((account) => account.signer).map((account) => account.address),
    feePayer,
    blockhash: message.recentBlockhash,
    accounts,
    instructions,
    lookupTables: lookups.length,
  };
}

/** Addresses that come again and again, by their bytes: writing base58 takes longer than all else here. */
const REMEMBERED = 20_000;
const remembered = new Map<string, string>();

function nameOf(key: Uint8Array): string {
  const bytes = Buffer.from(key).toString("latin1");
  const known = remembered.get(bytes);
  if (known) return known;
  const [oldest] = remembered.size >= REMEMBERED ? remembered.keys() : [];
  if (oldest !== undefined) remembered.delete(oldest);
  const address = base58.encode(key);
  remembered.set(bytes, address);
  return address;
}

/** The wire bytes with a signature in the place of its signer; an address that is no signer is a bug and thrown. */
export function withSignature(parsed: ParsedTransaction, address: string, signature: Uint8Array): Uint8Array {
  const place = parsed.signers.indexOf(address);
  if (place < 0 || signature.length !== SIGNATURE_BYTES) throw new Error(`${address} does not sign this transaction`);
  const bytes = Uint8Array.from(parsed.bytes);
  bytes.set(signature, 1 + SIGNATURE_BYTES * place);
  return bytes;
}

/** The fee payer's signature, base58: the name the network knows the transaction by. */
export function firstSignature(bytes: Uint8Array): string {
  return base58.encode(signatureAt(bytes, 0));
}

/** The wire form of a message that nobody has signed yet. */
export function encodeUnsigned(message: Uint8Array, signerCount: number): Uint8Array {
  const bytes = new Uint8Array(1 + SIGNATURE_BYTES * signerCount + message.length);
  bytes[0] = signerCount;
  bytes.set(message, 1 + SIGNATURE_BYTES * signerCount);
  return bytes;
}

function signatureAt(bytes: Uint8Array, place: number): Uint8Array {
  return Uint8Array.from(bytes.subarray(1 + SIGNATURE_BYTES * place, 1 + SIGNATURE_BYTES * (place + 1)));
}

function readMessage(bytes: Uint8Array): Message | MessageV0 | undefined {
  try {
    const message = VersionedMessage.deserialize(bytes);
    if (message.version !== "legacy" && message.version !== 0) return undefined;
    return Buffer.compare(message.serialize(), bytes) === 0 ? message : undefined;
  } catch {
    return undefined;
  }
}
