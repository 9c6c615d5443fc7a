const DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/** The value of each digit, by its character's code. */
const VALUES: readonly (number | undefined)[] = Array.from({ length: 128 }, (_, code) => {
  const value = DIGITS.indexOf(String.fromCharCode(code));
  return value < 0 ? undefined : value;
});
/** Digits that are split off or appended at a time: 58 ** 9 is the largest power of 58 below 2 ** 53. */
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

/**
 * Returns the bytes of a text in base58; undefined when it has other characters. The package needs ten times as long for a signature,
 * and a page of an account's history has a thousand. Like the package's, the time is quadratic in the length.
 */
export function decodeBase58(text: string): Uint8Array | undefined {
  let number = 0n;
  let part = 0;
  for (let index = 0; index < text.length; index += 1) {
    const value = VALUES[text.charCodeAt(index)];
    if (value === undefined) return undefined;
    part = part * 58 + value;
    if (index % PART === PART - 1) {
      number = number * DIVISOR + BigInt(part);
      part = 0;
    }
  }
  number = number * 58n ** BigInt(text.length % PART) + BigInt(part);
  const hex = number === 0n ? "" : number.toString(16);
  let zeros = 0;
  while (text.charAt(zeros) === "1") zeros += 1;
  return Buffer.from("00".repeat(zeros) + (hex.length % 2 === 1 ? `0${hex}` : hex), "hex");
}
