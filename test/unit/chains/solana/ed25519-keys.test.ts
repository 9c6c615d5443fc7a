import { createHash } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519";
import { base58 } from "@scure/base";
import { Keypair, SystemProgram } from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isAddress,
  openKeypair,
  openVerifier,
  parseSecret,
  verifySignature,
} from "../../../../chains/solana/ed25519-keys.ts";
import { makeSecret, makeSigner, treasury } from "./solana-fixtures.ts";

const message = Buffer.from("a message");

describe("a secret key", () => {
  const secret = makeSecret();
  const pair = Keypair.fromSecretKey(secret);

  test("a secret key is read from base58 and from the file of solana-keygen, and opens the same address", () => {
    for (const text of [
      base58.encode(secret),
      ` ${base58.encode(secret)}\n`,
      JSON.stringify([...secret]),
      `${JSON.stringify([...secret])}\n`,
    ]) {
      const read = parseSecret(text);
      expect(read && openKeypair(read).address).toBe(pair.publicKey.toBase58());
    }
  });

  test("gives the same signature as another ed25519 implementation", () => {
    expect(Buffer.from(openKeypair(secret).sign(message))).toEqual(
      Buffer.from(ed25519.sign(message, secret.subarray(0, 32))),
    );
  });

  const mismatched = Uint8Array.from(secret);
  mismatched[40] = (mismatched[40] ?? 0) ^ 1;
  test.each([
    ["nothing", ""],
    ["text that is not base58", "0OIl"],
    ["the seed alone", base58.encode(secret.subarray(0, 32))],
    ["65 bytes", base58.encode(Buffer.concat([secret, Buffer.from([1])]))],
    ["another public half", base58.encode(mismatched)],
    ["another public half as numbers", JSON.stringify([...mismatched])],
    ["numbers above 255", JSON.stringify([...secret.subarray(0, 63), (secret[63] ?? 0) + 256])],
    ["fractions", JSON.stringify([...secret.subarray(0, 63), (secret[63] ?? 0) + 0.5])],
    ["an array of strings", JSON.stringify([...secret].map(String))],
    ["half an array", JSON.stringify([...secret]).slice(0, -1)],
    ["hex", Buffer.from(secret).toString("hex")],
  ])("%s is refused", (_, text) => {
    expect(parseSecret(text)).toBeUndefined();
  });

  test("reading any text as a secret key throws nothing", () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => parseSecret(text) === undefined));
  });
});

describe.each<[string, typeof verifySignature]>([
  ["", verifySignature],
  [", verified with an open key", (address, ...signed) => openVerifier(address)(...signed)],
])("a signature%s", (_how, verify) => {
  const signer = makeSigner();
  const signature = signer.sign(message);

  test("a signature of the message by the address's key is valid", () => {
    expect(verify(signer.address, message, signature)).toBe(true);
  });

  test("a signature by another key, of another message, or with a flipped bit is invalid", () => {
    expect(verify(makeSigner().address, message, signature)).toBe(false);
    expect(verify(signer.address, Buffer.from("another"), signature)).toBe(false);
    for (const at of [0, 31, 32, 63]) {
      const flipped = Uint8Array.from(signature);
      flipped[at] = (flipped[at] ?? 0) ^ 1;
      expect(verify(signer.address, message, flipped)).toBe(false);
    }
  });

  test("a signature with a wrong length or for an invalid address is invalid, without a throw", () => {
    for (const length of [0, 1, 63, 65]) {
      expect(verify(signer.address, message, new Uint8Array(length))).toBe(false);
    }
    for (const address of ["", "0", signer.address.slice(1), `${signer.address}1`, "é"]) {
      expect(verify(address, message, signature)).toBe(false);
    }
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.uint8Array({ minLength: 64, maxLength: 64 }),
        (key, random) => {
          expect(verify(base58.encode(key), message, random)).toBe(false);
        },
      ),
    );
  });

  test("for the System program's address, which anyone could forge, is invalid", () => {
    // The all-zero key is a point of order four. With R = the neutral point and s = 0, one message in four would verify.
    const forged = new Uint8Array(64);
    forged[0] = 1;
    const messages = Array.from({ length: 64 }, (_, index) => Buffer.from(`message ${index}`));
    expect(messages.filter((one) => verify(SystemProgram.programId.toBase58(), one, forged))).toEqual([]);
  });

  test("a signature whose R is a point of small order is invalid, although the equation holds", () => {
    const { scalar, pointBytes } = ed25519.utils.getExtendedPublicKey(makeSecret().subarray(0, 32));
    const neutral = ed25519.ExtendedPoint.ZERO.toRawBytes();
    const digest = createHash("sha512")
      .update(Buffer.concat([neutral, pointBytes, message]))
      .digest();
    const challenge = BigInt(`0x${digest.reverse().toString("hex")}`);
    const s = Buffer.from(((challenge * scalar) % ed25519.CURVE.n).toString(16).padStart(64, "0"), "hex").reverse();
    const forged = Buffer.concat([neutral, s]);
    expect(ed25519.verify(forged, message, pointBytes, { zip215: true })).toBe(true);
    expect(verify(base58.encode(pointBytes), message, forged)).toBe(false);
  });

  test("for a key that is any point of small order is invalid", () => {
    const torsion = ed25519.ExtendedPoint.fromHex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05");
    let point = torsion;
    const forged = new Uint8Array(64);
    forged[0] = 1;
    for (let order = 0; order < 8; order++, point = point.add(torsion)) {
      expect(point.isSmallOrder()).toBe(true);
      const key = base58.encode(point.toRawBytes());
      const messages = Array.from({ length: 64 }, (_, index) => Buffer.from(`message ${index}`));
      expect(messages.some((one) => verify(key, one, forged))).toBe(false);
    }
  });
});

describe("an address", () => {
  test("an address is base58 of exactly 32 bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 30, maxLength: 34 }), (bytes) => {
        expect(isAddress(base58.encode(bytes))).toBe(bytes.length === 32);
      }),
    );
    expect(isAddress(SystemProgram.programId.toBase58())).toBe(true);
    expect(isAddress("1".repeat(33))).toBe(false);
    expect(isAddress("1".repeat(100_000))).toBe(false);
    expect(isAddress(`${treasury.slice(0, -1)}0`)).toBe(false);
  });
});
