const DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/** Digits that are split off at a time: the largest power of 58 below 2 ** 53. */
const PART = 9;
const DIVISOR = 58n ** BigInt(PART);

/**
 * Returns bytes in base58. The package that decodes it divides byte by byte, which takes ten times as long for a signature:
 * every payment has one, and it is the key of the transaction's row.
 */
export function encodeBase58(bytes: Uint8Array): string {
  let number = BigInt(`0x0${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex")}`);
  let text = "";
  while (number > 0n) {
    let part = Number(number % DIVISOR);
    number /= DIVISOR;
    // Zeros in front of the first digit are no digits.
    for (let left = PART; left > 0 && (number > 0n || part > 0); left -= 1) {
      text = DIGITS.charAt(part % 58) + text;
      part = Math.floor(part / 58);
    }
  }
  // A zero byte in front is a digit of its own.
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return "1".repeat(zeros < 0 ? bytes.length : zeros) + text;
}
