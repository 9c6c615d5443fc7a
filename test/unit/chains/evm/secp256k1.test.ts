import { randomBytes } from "node:crypto";
import { bytesToHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { javascriptCurve, openNativeCurve } from "../../../../chains/evm/secp256k1.ts";
import lockfile from "../../../../package-lock.json" with { type: "json" };

const native = openNativeCurve();
const curves = [javascriptCurve, ...(native ? [native] : [])];

describe.each(curves)("the $name curve", (curve) => {
  test("recovers the signing public key, and signs with a low s", () => {
    for (let round = 0; round < 50; round += 1) {
      const [digest, key] = [randomBytes(32), randomBytes(32)];
      const { signature, recovery } = curve.sign(digest, key);
      expect(curve.recover(digest, signature, recovery)).toEqual(curve.publicKey(key));
      expect(signature[32]).toBeLessThan(0x80);
    }
  });

  test("signs like viem", async () => {
    const key = generatePrivateKey();
    const digest = randomBytes(32);
    const { signature, recovery } = curve.sign(digest, Buffer.from(key.slice(2), "hex"));
    const expected = await privateKeyToAccount(key).sign({ hash: bytesToHex(digest) });
    expect(`${bytesToHex(signature)}${(27 + recovery).toString(16)}`).toBe(expected);
  });

  test.each([
    ["an r of zero", Buffer.concat([Buffer.alloc(32), randomBytes(32)])],
    ["an s of zero", Buffer.concat([Buffer.alloc(31, 1), Buffer.alloc(33)])],
    ["an r above the order", Buffer.concat([Buffer.alloc(32, 0xff), Buffer.alloc(32, 1)])],
  ])("throws for %s", (_name, signature) => {
    expect(() => curve.recover(randomBytes(32), signature, 0)).toThrow();
  });
});

test("no dependency installs elliptic, which accepted forged signatures (CVE-2025-14505)", () => {
  const packages: Record<string, { version?: string; resolved?: string; name?: string }> = lockfile.packages;
  const elliptic = Object.entries(packages).filter(
    ([path, { name }]) => /(^|\/)elliptic$/.test(path) && (name === undefined || name === "elliptic"),
  );
  expect(elliptic).toEqual([]);
});
