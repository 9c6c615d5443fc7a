import { randomBytes } from "node:crypto";
import { encode } from "uqr";
import { expect, test } from "vitest";
import { qrCode } from "../../../../../api/checkout/pages/qr-code.ts";

/** Returns the modules of a code's picture, true for a dark one. */
function readModules(markup: string): boolean[][] {
  const file = Buffer.from(/src="data:image\/bmp;base64,([^"]+)"/.exec(markup)?.[1] ?? "", "base64");
  const [start, size] = [file.readUInt32LE(10), file.readUInt32LE(18)];
  const rowBytes = Math.ceil(size / 32) * 4;
  const isDark = (x: number, y: number) => ((file[start + y * rowBytes + (x >> 3)] ?? 0) & (0x80 >> (x & 7))) !== 0;
  const rows = Array.from({ length: size }, (_, y) => Array.from({ length: size }, (_, x) => isDark(x, y)));
  return rows.reverse();
}

test.each(["https://pay.example.com/?pid=pay_", "http://localhost:3000/checkout-pages/?pid=pay_"])(
  "the code of every payment link that begins with %s is that of the library",
  (prefix) => {
    for (let round = 0; round < 100; round += 1) {
      const link = prefix + randomBytes(16).toString("hex");
      const { data } = encode(link, { ecc: "M", border: 4, maskPattern: 3 });
      expect(readModules(qrCode(link, "code").markup)).toEqual(data);
    }
  },
);
