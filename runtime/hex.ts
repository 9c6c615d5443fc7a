type Hex = `0x${string}`;

/** Returns text that must be hex, with the type that says so. Throws when it does not begin with `0x`. */
export function readHex(text: string): Hex {
  if (isHexText(text)) return text;
  throw new Error(`${text} is not hex`);
}

/** Returns true for text that begins with `0x`. */
export function isHexText(text: string): text is Hex {
  return text.startsWith("0x");
}
