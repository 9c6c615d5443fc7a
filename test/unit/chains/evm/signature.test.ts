import { randomBytes } from "node:crypto";
import { concat, type Hex, numberToHex, recoverAddress, slice, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { recoverSigner, validateSignature } from "../../../../chains/evm/signature.ts";

const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const account = privateKeyToAccount(generatePrivateKey());
const digest = toHex(randomBytes(32));
const signature = await account.sign({ hash: digest });

const withV = (v: number): Hex => concat([slice(signature, 0, 64), numberToHex(v, { size: 1 })]);
const v = Number(slice(signature, 64));

/** Returns the malleated signature of the same digest: s mirrored, v flipped. */
function malleate(original: Hex): Hex {
  const s = numberToHex(N - BigInt(slice(original, 32, 64)), { size: 32 });
  return concat([slice(original, 0, 32), s, numberToHex(Number(slice(original, 64)) === 27 ? 28 : 27, { size: 1 })]);
}

describe("the form of a signature", () => {
  test("v of 27 or 28, or of 0 or 1 as some wallets write it, is accepted", () => {
    for (const valid of [0, 1, 27, 28]) expect(validateSignature(withV(valid))).toBeUndefined();
  });

  test("upper-case hex is accepted", () => {
    expect(validateSignature(`0x${signature.slice(2).toUpperCase()}`)).toBeUndefined();
  });

  test.each([2, 26, 29, 35, 36, 255])("v of %i is refused with a reason that names the last byte", (invalid) => {
    expect(validateSignature(withV(invalid))).toContain("last byte");
  });

  test("64 and 66 bytes are refused for their length", () => {
    expect(validateSignature(slice(signature, 0, 64))).toContain("65 bytes");
    expect(validateSignature(concat([signature, "0x00"]))).toContain("65 bytes");
    expect(validateSignature("0x")).toContain("65 bytes");
  });

  test.each([
    "",
    "no",
    signature.slice(2),
    `${signature}0`,
    `${signature.slice(0, -1)}g`,
    ` ${signature}`,
    `${signature}\n`,
  ])("%j is refused, because it is not hex", (text) => {
    expect(validateSignature(text)).toContain("hex");
  });

  test("a malleated signature with a high s is refused, although its key can be recovered", async () => {
    const malleated = malleate(signature);
    expect(await recoverAddress({ hash: digest, signature: malleated })).toBe(account.address);
    expect(validateSignature(malleated)).toContain("upper half");
  });

  test("the highest s that tokens accept is accepted, and the next one is refused", () => {
    const withS = (s: bigint) => concat([slice(signature, 0, 32), numberToHex(s, { size: 32 }), "0x1b"]);
    expect(validateSignature(withS(N / 2n))).toBeUndefined();
    expect(validateSignature(withS(N / 2n + 1n))).toContain("upper half");
  });
});

describe("the recovered signer", () => {
  test("equals viem's for 200 random keys and digests", async () => {
    for (let round = 0; round < 200; round += 1) {
      const signer = privateKeyToAccount(generatePrivateKey());
      const hash = toHex(randomBytes(32));
      const signed = await signer.sign({ hash });
      expect(recoverSigner(hash, signed)).toBe(signer.address.toLowerCase());
      // Another digest gives another signer or none, as with viem.
      const other = toHex(randomBytes(32));
      const byViem = await recoverAddress({ hash: other, signature: signed }).catch(() => undefined);
      expect(recoverSigner(other, signed)).toBe(byViem?.toLowerCase());
    }
  });

  test("the recovered signer is the same for v of 0 or 1 as for v of 27 or 28", () => {
    expect(recoverSigner(digest, withV(v - 27))).toBe(account.address.toLowerCase());
  });

  test("the recovered signer is undefined for numbers that no key can have made", () => {
    const zero = numberToHex(0, { size: 32 });
    const r = slice(signature, 0, 32);
    const s = slice(signature, 32, 64);
    expect(recoverSigner(digest, concat([zero, s, "0x1b"]))).toBeUndefined();
    expect(recoverSigner(digest, concat([r, zero, "0x1b"]))).toBeUndefined();
    expect(recoverSigner(digest, concat([numberToHex(N, { size: 32 }), s, "0x1b"]))).toBeUndefined();
  });
});
