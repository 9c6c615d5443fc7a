import { PACKET_DATA_SIZE } from "@solana/web3.js";
import { encodeBase58 } from "./base58.ts";
import { readWireMessage, type WireMessage } from "./wire-message.ts";

/** A parsed transaction, in the order of its bytes and without omissions. `accounts` are the static accounts. */
export type ParsedTransaction = {
  bytes: Uint8Array;
  /** The signed bytes. */
  message: Uint8Array;
  /** 64 bytes each, in the order of `signers`. A missing signature is all zeros. */
  signatures: Uint8Array[];
  signers: string[];
  /** The keys of the signers, 32 bytes each: `signers` has them in base58. */
  signerKeys: Uint8Array[];
  feePayer: string;
  blockhash: string;
  accounts: ParsedAccount[];
  /** `accounts` are indexes into the transaction's accounts. With lookup tables they may exceed the static accounts. */
  instructions: { program: string; accounts: number[]; data: Uint8Array }[];
  lookupTables: number;
};

type ParsedAccount = { address: string; signer: boolean; writable: boolean };

export const SIGNATURE_BYTES = 64;

/**
 * Parses a transaction in wire format, legacy or version 0, of at most 1232 bytes. Refuses a transaction that does not
 * serialize to the same bytes, and one that a validator would refuse without executing it: counts that contradict the
 * header, or indexes out of range. Never throws.
 */
export function parseTransaction(bytes: Uint8Array): ParsedTransaction | { error: string } {
  if (bytes.length === 0) return { error: "the transaction is empty" };
  if (bytes.length > PACKET_DATA_SIZE) {
    return { error: `the transaction has ${bytes.length} bytes, the limit is ${PACKET_DATA_SIZE}` };
  }
  // The signature count is a compact-u16, which is one byte below 128. At most 19 signatures fit into 1232 bytes.
  const count = bytes[0] ?? 0;
  const messageBytes = bytes.subarray(1 + SIGNATURE_BYTES * count);
  const message = readWireMessage(messageBytes);
  if (!message) return { error: "the bytes are not a legacy or version 0 transaction" };
  const { signers, readonlySigners, readonlyOthers, lookedUp } = message;
  if (count !== signers) return { error: `the transaction has ${count} signatures, its header says ${signers}` };
  const accounts = listAccounts(message);
  const feePayer = accounts[0]?.address;
  if (!feePayer || readonlySigners >= signers || signers + readonlyOthers > accounts.length) {
    return { error: "the transaction's header does not fit its accounts" };
  }
  const instructions = [];
  for (const { program: index, accounts: named, data } of message.instructions) {
    const program = accounts[index]?.address;
    // The runtime does not allow the fee payer as a program, nor a program from a lookup table.
    if (!program || index === 0 || named.some((at) => at >= accounts.length + lookedUp)) {
      return { error: "an instruction of the transaction names an account that does not exist" };
    }
    instructions.push({ program, accounts: named, data });
  }
  return {
    bytes,
    message: messageBytes,
    signatures: Array.from({ length: count }, (_, place) => signatureAt(bytes, place)),
    signers: accounts.slice(0, signers).map((account) => account.address),
    signerKeys: message.keys.slice(0, signers),
    feePayer,
    blockhash: encodeKey(message.blockhash),
    accounts,
    instructions,
    lookupTables: message.lookupTables,
  };
}

/** Returns the static accounts. Of the signers, and of the others, the last ones are read-only. */
function listAccounts({ keys, signers, readonlySigners, readonlyOthers }: WireMessage): ParsedAccount[] {
  return keys.map((key, index) => {
    const signer = index < signers;
    const writable = index < (signer ? signers - readonlySigners : keys.length - readonlyOthers);
    return { address: encodeKey(key), signer, writable };
  });
}

/** Maximum size of the address cache. */
const MAX_CACHED = 20_000;
const addressCache = new Map<string, string>();

/** Returns the base58 of a public key or a blockhash, from a cache. */
function encodeKey(key: Uint8Array): string {
  const bytes = Buffer.from(key).toString("latin1");
  const cached = addressCache.get(bytes);
  if (cached) return cached;
  const [oldest] = addressCache.size >= MAX_CACHED ? addressCache.keys() : [];
  if (oldest !== undefined) addressCache.delete(oldest);
  const address = encodeBase58(key);
  addressCache.set(bytes, address);
  return address;
}

/** Returns the wire bytes with a signer's signature set. Throws if the address is not a signer of the transaction. */
export function withSignature(parsed: ParsedTransaction, address: string, signature: Uint8Array): Uint8Array {
  const place = parsed.signers.indexOf(address);
  if (place < 0 || signature.length !== SIGNATURE_BYTES) throw new Error(`${address} does not sign this transaction`);
  const bytes = new Uint8Array(parsed.bytes);
  bytes.set(signature, 1 + SIGNATURE_BYTES * place);
  return bytes;
}

/** Returns the fee payer's signature in base58, which is the transaction's id. */
export function firstSignature(bytes: Uint8Array): string {
  return encodeBase58(signatureAt(bytes, 0));
}

/** Returns the wire format of an unsigned message. */
export function encodeUnsigned(message: Uint8Array, signerCount: number): Uint8Array {
  const bytes = new Uint8Array(1 + SIGNATURE_BYTES * signerCount + message.length);
  bytes[0] = signerCount;
  bytes.set(message, 1 + SIGNATURE_BYTES * signerCount);
  return bytes;
}

function signatureAt(bytes: Uint8Array, place: number): Uint8Array {
  return new Uint8Array(bytes.subarray(1 + SIGNATURE_BYTES * place, 1 + SIGNATURE_BYTES * (place + 1)));
}
