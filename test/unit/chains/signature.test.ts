import { randomBytes } from "node:crypto";
import { concat, type Hex, numberToHex, recoverAddress, slice, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { findSignatureFault, recoverSigner } from "../../../chains/evm/signature.ts";

const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const account = privateKeyToAccount(generatePrivateKey());
const digest = toHex(randomBytes(32));
const signature = await account.sign({ hash: digest });

const withV = (v: number): Hex => concat([slice(signature, 0, 64), numberToHex(v, { size: 1 })]);
const v = Number(slice(signature, 64));

/** The other signature of the same key over the same digest: s mirrored, v turned over. */
function twinOf(original: Hex): Hex {
  const s = numberToHex(N - BigInt(slice(original, 32, 64)), { size: 32 });
  return concat([slice(original, 0, 32), s, numberToHex(Number(slice(original, 64)) === 27 ? 28 : 27, { size: 1 })]);
}

describe("the form of a signature", () => {
  test("v of 27 and 28, or of 0 and 1 as some wallets write it, is good", () => {
    for (const good of [0, 1, 27, 28]) expect(findSignatureFault(withV(good))).toBeUndefined();
  });

  test("hex in capitals is good", () => {
    expect(findSignatureFault(`0x${signature.slice(2).toUpperCase()}`)).toBeUndefined();
  });

  test.each([2, 26, 29, 35, 36, 255])("v of %i is refused with a sentence about the last byte", (bad) => {
    expect(findSignatureFault(withV(bad))).toContain("last byte");
  });

  test("64 and 66 bytes are refused for their length", () => {
    expect(findSignatureFault(slice(signature, 0, 64))).toContain("65 bytes");
    expect(findSignatureFault(concat([signature, "0x00"]))).toContain("65 bytes");
    expect(findSignatureFault("0x")).toContain("65 bytes");
  });

  test.each([
    "",
    "no",
    signature.slice(2),
    `${signature}0`,
    `${signature.slice(0, -1)}g`,
    ` ${signature}`,
    `${signature}\n`,
  ])("%j is refused as no hex", (text) => {
    expect(findSignatureFault(text)).toContain("hex");
  });

  test("the twin with a high s is refused, though its key would be recovered from it", async () => {
    const twin = twinOf(signature);
    expect(await recoverAddress({ hash: digest, signature: twin })).toBe(account.address);
    expect(findSignatureFault(twin)).toContain("upper half");
  });

  test("the highest s that a token takes is good and the next one is not", () => {
    const withS = (s: bigint) => concat([slice(signature, 0, 32), numberToHex(s, { size: 32 }), "0x1b"]);
    expect(findSignatureFault(withS(N / 2n))).toBeUndefined();
    expect(findSignatureFault(withS(N / 2n + 1n))).toContain("upper half");
  });
});

describe("who signed", () => {
  test("is what viem says, over 200 random keys and digests", { timeout: 60_000 }, async () => {
    for (let round = 0; round < 200; round += 1) {
      const signer = privateKeyToAccount(generatePrivateKey());
      const hash = toHex(randomBytes(32));
      const signed = await signer.sign({ hash });
      expect(recoverSigner(hash, signed)).toBe(signer.address.toLowerCase());
      // Another digest gives another signer or none, and the same one as viem.
      const other = toHex(randomBytes(32));
      const byViem = await recoverAddress({ hash: other, signature: signed }).catch(() => undefined);
      expect(recoverSigner(other, signed)).toBe(byViem?.toLowerCase());
    }
  });

  test("does not depend on whether v is written as 0 and 1 or as 27 and 28", () => {
    expect(recoverSigner(digest, withV(v - 27))).toBe(account.address.toLowerCase());
  });

  test("is nobody for numbers that no key could have made", () => {
    const zero = numberToHex(0, { size: 32 });
    const r = slice(signature, 0, 32);
    const s = slice(signature, 32, 64);
    expect(recoverSigner(digest, concat([zero, s, "0x1b"]))).toBeUndefined();
    expect(recoverSigner(digest, concat([r, zero, "0x1b"]))).toBeUndefined();
    expect(recoverSigner(digest, concat([numberToHex(N, { size: 32 }), s, "0x1b"]))).toBeUndefined();
  });
});
