import { base58 } from "@scure/base";
import {
  AddressLookupTableAccount,
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionMessage,
  VersionedMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildPayment } from "../../../../chains/solana/build-payment.ts";
import {
  encodeUnsigned,
  firstSignature,
  type ParsedTransaction,
  parseTransaction,
  withSignature,
} from "../../../../chains/solana/wire-format.ts";
import { blockhash, budget, buyer, makeSigner, makeTransfer, relayer } from "./solana-fixtures.ts";

const payment = buildPayment(makeTransfer(), budget, blockhash);

function parse(bytes: Uint8Array): ParsedTransaction {
  const parsed = parseTransaction(bytes);
  if ("error" in parsed) throw new Error(parsed.error);
  return parsed;
}

function refusalOf(bytes: Uint8Array): string {
  const parsed = parseTransaction(bytes);
  return "error" in parsed ? parsed.error : "none";
}

function changed(bytes: Uint8Array, at: number, value: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[at] = value;
  return copy;
}

/** Returns the message as web3.js reads it; undefined for bytes that it does not serialize to the same bytes. */
function readByLibrary(bytes: Uint8Array): VersionedMessage | undefined {
  try {
    const message = bytes.subarray(1 + 64 * (bytes[0] ?? 0));
    const read = VersionedMessage.deserialize(message);
    const isKnown = read.version === "legacy" || read.version === 0;
    return isKnown && Buffer.compare(read.serialize(), message) === 0 ? read : undefined;
  } catch {
    return undefined;
  }
}

/** Describes a message of web3.js as the parser does. */
function describeByLibrary(message: VersionedMessage | undefined) {
  if (!message) return undefined;
  const { header, staticAccountKeys, recentBlockhash, compiledInstructions, addressTableLookups } = message;
  const accounts = staticAccountKeys.map((key, index) => ({
    address: key.toBase58(),
    signer: index < header.numRequiredSignatures,
    writable: message.isAccountWritable(index),
  }));
  return {
    signers: accounts.filter(({ signer }) => signer).map(({ address }) => address),
    feePayer: accounts[0]?.address,
    blockhash: recentBlockhash,
    accounts,
    instructions: compiledInstructions.map(({ programIdIndex, accountKeyIndexes, data }) => ({
      program: accounts[programIdIndex]?.address,
      accounts: accountKeyIndexes,
      data: Uint8Array.from(data),
    })),
    lookupTables: addressTableLookups.length,
  };
}

/** A legacy transaction as older wallets return it: signed by the payer, without the fee payer's signature. */
const payer = Keypair.generate();
const feePayer = Keypair.generate();
const legacy = new Transaction({ feePayer: feePayer.publicKey, recentBlockhash: blockhash });
legacy.add(SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: feePayer.publicKey, lamports: 7 }));
legacy.partialSign(payer);
const legacyBytes = legacy.serialize({ requireAllSignatures: false });

describe("the bytes of a transaction", () => {
  test("the bytes of a transaction of version 0 are parsed into signers, fee payer, accounts and instructions", () => {
    const parsed = parse(payment);
    expect(parsed.signers).toEqual([relayer.address, buyer.address]);
    expect(parsed.feePayer).toBe(relayer.address);
    expect(parsed.blockhash).toBe(blockhash);
    expect(parsed.lookupTables).toBe(0);
    expect(parsed.accounts.slice(0, 2)).toEqual([
      { address: relayer.address, signer: true, writable: true },
      { address: buyer.address, signer: true, writable: false },
    ]);
    expect(parsed.instructions).toHaveLength(4);
    expect(parsed.signatures).toEqual([new Uint8Array(64), new Uint8Array(64)]);
    expect(Buffer.from(encodeUnsigned(parsed.message, 2))).toEqual(Buffer.from(payment));
  });

  test("the bytes of a transaction in the legacy format are parsed", () => {
    const parsed = parse(legacyBytes);
    expect(parsed.signers).toEqual([feePayer.publicKey.toBase58(), payer.publicKey.toBase58()]);
    expect(Buffer.from(parsed.message)).toEqual(legacy.serializeMessage());
    expect(parsed.instructions).toEqual([
      {
        program: SystemProgram.programId.toBase58(),
        accounts: [1, 0],
        data: Uint8Array.from([2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]),
      },
    ]);
    expect(parsed.signatures[0]).toEqual(new Uint8Array(64));
    expect(Buffer.from(parsed.signatures[1] ?? [])).toEqual(legacy.signatures[1]?.signature);
  });

  test("the bytes of a transaction that list an account twice are parsed without removing the duplicate", () => {
    // Keys start after the count, two signatures, the version, the header and the number of keys.
    const keys = 1 + 128 + 1 + 3 + 1;
    const doubled = Uint8Array.from(payment);
    doubled.set(payment.subarray(keys, keys + 32), keys + 64);
    const parsed = parse(doubled);
    expect(parsed.accounts[2]?.address).toBe(relayer.address);
    expect(parsed.accounts).toHaveLength(parse(payment).accounts.length);
  });

  test("the bytes of a transaction with a lookup table are parsed, and the table is counted", () => {
    const [inTable, from] = [Keypair.generate().publicKey, Keypair.generate().publicKey];
    const table = new AddressLookupTableAccount({
      key: Keypair.generate().publicKey,
      state: { deactivationSlot: 0n, lastExtendedSlot: 0, lastExtendedSlotStartIndex: 0, addresses: [inTable] },
    });
    const message = new TransactionMessage({
      payerKey: from,
      recentBlockhash: blockhash,
      instructions: [SystemProgram.transfer({ fromPubkey: from, toPubkey: inTable, lamports: 1 })],
    }).compileToV0Message([table]);
    const parsed = parse(new VersionedTransaction(message).serialize());
    expect(parsed.lookupTables).toBe(1);
    expect(parsed.accounts).toHaveLength(2);
    expect(parsed.instructions[0]?.accounts).toEqual([0, 2]);
  });

  test.each([
    ["no bytes", new Uint8Array(), "empty"],
    ["1233 bytes", new Uint8Array(1233), "1233 bytes"],
    ["a trailing byte", Buffer.concat([payment, Buffer.from([0])]), "not a legacy or version 0"],
    ["the last byte missing", payment.subarray(0, -1), "not a legacy or version 0"],
    [
      "a length in two bytes that fits into one",
      Buffer.concat([Buffer.from([0x82, 0]), payment.subarray(1)]),
      "not a legacy",
    ],
    ["version 1", changed(payment, 129, 0x81), "not a legacy"],
    ["version 127", changed(payment, 129, 0xff), "not a legacy"],
    [
      "one signature and a header for two",
      Buffer.concat([Buffer.from([1]), payment.subarray(65)]),
      "1 signatures, its header says 2",
    ],
    ["two signatures and a header for one", changed(payment, 130, 1), "2 signatures, its header says 1"],
    ["only read-only signers", changed(payment, 131, 2), "header does not fit"],
    ["more read-only accounts than accounts", changed(payment, 132, 200), "header does not fit"],
  ])("with %s are refused", (_, bytes, reason) => {
    expect(refusalOf(bytes)).toContain(reason);
  });

  test("the bytes of a transaction with an instruction whose index exceeds the accounts, or whose program is the fee payer, are refused", () => {
    const at = payment.length - 1 - Buffer.from("pay_0123456789abcdef").length - 3;
    expect(payment[at]).toBe(parse(payment).accounts.findIndex((one) => one.address.startsWith("Memo")));
    expect(refusalOf(changed(payment, at, 40))).toContain("names an account that does not exist");
    expect(refusalOf(changed(payment, at, 0))).toContain("names an account that does not exist");
    // The transfer's last account precedes its ten bytes of data and their length.
    const authority = at - 12;
    expect(payment[authority]).toBe(1);
    const { length } = parse(payment).accounts;
    expect(refusalOf(changed(payment, authority, length))).toContain("names an account that does not exist");
    expect(refusalOf(changed(payment, authority, length - 1))).toBe("none");
  });

  test("no bytes make the parser throw, and it reads the same transactions as web3.js, which serializes them to the same bytes", () => {
    const holds = (bytes: Uint8Array) => {
      const parsed = parseTransaction(bytes);
      const reference = readByLibrary(bytes);
      if ("error" in parsed) {
        if (parsed.error.includes("not a legacy")) expect(reference).toBeUndefined();
        return;
      }
      expect(describeByLibrary(reference)).toEqual({
        ...parsed,
        bytes: undefined,
        message: undefined,
        signatures: undefined,
        signerKeys: undefined,
      });
      expect(parsed.signerKeys.map((key) => base58.encode(key))).toEqual(parsed.signers);
      expect(Buffer.from(encodeUnsigned(parsed.message, parsed.signatures.length)).length).toBe(bytes.length);
      expect(Buffer.from(VersionedTransaction.deserialize(bytes).serialize())).toEqual(Buffer.from(bytes));
    };
    fc.assert(fc.property(fc.uint8Array({ maxLength: 1300 }), holds), { numRuns: 500 });
    const mutated = fc.tuple(
      fc.constantFrom(payment, Uint8Array.from(legacyBytes)),
      fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { minLength: 1, maxLength: 6 }),
    );
    fc.assert(
      fc.property(mutated, ([from, changes]) => {
        const bytes = Uint8Array.from(from);
        for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value;
        holds(bytes);
      }),
      { numRuns: 1000 },
    );
  });

  test("the bytes of a transaction with a length of more than two billion are refused at once", () => {
    for (const prefix of [[0xff, 0xff, 0xff, 0xff, 0x07], [0xff, 0xff, 0xff, 0xff, 0x0f], Array(900).fill(0x80)]) {
      expect(refusalOf(Uint8Array.from(prefix))).toContain("not a legacy");
      expect(refusalOf(Uint8Array.from([0, 1, 0, 0, ...prefix]))).toContain("not a legacy");
    }
  });
});

describe("adding a signature", () => {
  test("changes nothing else, and the fee payer's signature is the transaction's id", () => {
    const before = Uint8Array.from(payment);
    const parsed = parse(payment);
    const signature = relayer.sign(parsed.message);
    const signed = withSignature(parsed, relayer.address, signature);
    expect(firstSignature(signed)).toBe(base58.encode(signature));
    const both = parse(withSignature(parse(signed), buyer.address, buyer.sign(parsed.message)));
    expect(Buffer.from(both.message)).toEqual(Buffer.from(parsed.message));
    expect(Buffer.from(both.signatures[0] ?? [])).toEqual(Buffer.from(signature));
    expect(Buffer.from(both.signatures[1] ?? [])).toEqual(Buffer.from(buyer.sign(parsed.message)));
    expect(parsed.bytes).toEqual(before);
  });

  test("adding a signature of an account that is not a signer, or with a wrong length, throws", () => {
    const parsed = parse(payment);
    expect(() => withSignature(parsed, makeSigner().address, new Uint8Array(64))).toThrow("does not sign");
    expect(() => withSignature(parsed, buyer.address, new Uint8Array(63))).toThrow("does not sign");
  });

  test("gives the same bytes as web3.js", () => {
    const parsed = parse(payment);
    const reference = VersionedTransaction.deserialize(payment);
    reference.addSignature(new PublicKey(buyer.address), buyer.sign(parsed.message));
    const ours = withSignature(parsed, buyer.address, buyer.sign(parsed.message));
    expect(Buffer.from(ours)).toEqual(Buffer.from(reference.serialize()));
  });
});
