import { encode } from "uqr";
import { type Html, html } from "../../../runtime/html.ts";

/** Width of the white border, modules: scanners need it on any background. */
const QUIET_ZONE = 4;
/** One of the eight masks. Payment links differ in random digits, so any mask suits them; rating all eight takes a millisecond. */
const MASK = 3;

/**
 * Returns a link as a QR code: a picture with a pixel for each module, black on white in every theme. Level M tolerates a
 * scratched screen.
 */
export function qrCode(link: string, name: string): Html {
  const picture = drawCode(link);
  const { size } = picture;
  return html`<img class="qr" src="${toSource(picture)}" alt="${name}" width="${size}" height="${size}">`;
}

/** Returns the picture of a link's code as a data URI. It has the same length for all links of one length. */
export const qrSource = (link: string): string => toSource(drawCode(link));

const toSource = ({ size, pixels }: Picture): string =>
  `data:image/bmp;base64,${toBitmap(size, pixels).toString("base64")}`;

/** A picture of `size` by `size` pixels, one bit each, as the rows of a bitmap: the lowest row first, each a multiple of 32 bits. */
type Picture = { size: number; pixels: Uint32Array };

/**
 * Returns the picture of a link's code. The codes of links of one length are linear: the difference between two codes is the sum
 * of the differences that the single characters make. So the picture of a link is that of the same link with zeros for its last
 * digits, and the change of each digit. To encode a link takes twenty times as long; it is needed once for each digit in each
 * place.
 */
function drawCode(link: string): Picture {
  const [, prefix = "", digits = ""] = /^(.*?)([0-9a-f]*)$/.exec(link) ?? [];
  const zeros = "0".repeat(digits.length);
  const base = encodeOnce(prefix + zeros);
  const pixels = base.pixels.slice();
  for (let at = 0; at < digits.length; at += 1) {
    const change = findChange(base, { prefix, zeros, at, digit: digits.charAt(at) });
    for (let index = 0; index < pixels.length; index += 1) pixels[index] = (pixels[index] ?? 0) ^ (change[index] ?? 0);
  }
  return { size: base.size, pixels };
}

/** By the link with zeros. A deployment has one. */
const bases = new Map<string, Picture>();
/** By the base, and by place and digit (place * 16 + digit): 500 at most, of 330 bytes. */
const changes = new WeakMap<Picture, (Uint32Array | undefined)[]>();

function encodeOnce(link: string): Picture {
  const base = bases.get(link) ?? encodeLink(link);
  bases.set(link, base);
  return base;
}

type Place = { prefix: string; zeros: string; at: number; digit: string };

/** Returns the pixels in which two codes differ, whose links differ in one digit only. */
function findChange(base: Picture, { prefix, zeros, at, digit }: Place): Uint32Array {
  const known = changes.get(base) ?? [];
  changes.set(base, known);
  const index = at * 16 + Number.parseInt(digit, 16);
  const found = known[index];
  if (found) return found;
  const { pixels } = encodeLink(prefix + zeros.slice(0, at) + digit + zeros.slice(at + 1));
  const change = pixels.map((word, index) => word ^ (base.pixels[index] ?? 0));
  known[index] = change;
  return change;
}

function encodeLink(link: string): Picture {
  const { data, size } = encode(link, { ecc: "M", border: QUIET_ZONE, maskPattern: MASK });
  const words = Math.ceil(size / 32);
  const bytes = new Uint8Array(words * 4 * size);
  for (const [y, row] of data.toReversed().entries())
    for (const [x, isDark] of row.entries()) {
      const at = y * words * 4 + (x >> 3);
      if (isDark) bytes[at] = (bytes[at] ?? 0) | (0x80 >> (x & 7));
    }
  return { size, pixels: new Uint32Array(bytes.buffer) };
}

const HEADER_BYTES = 62;

/** Returns a BMP file of two colours. The format has neither a checksum nor compression. */
function toBitmap(size: number, pixels: Uint32Array): Buffer {
  const file = Buffer.alloc(HEADER_BYTES + pixels.byteLength);
  file.write("BM", "latin1");
  file.writeUInt32LE(file.length, 2);
  file.writeUInt32LE(HEADER_BYTES, 10);
  // BITMAPINFOHEADER: its own size, width, height, planes and bits for each pixel.
  file.writeUInt32LE(40, 14);
  file.writeUInt32LE(size, 18);
  file.writeUInt32LE(size, 22);
  file.writeUInt16LE(1, 26);
  file.writeUInt16LE(1, 28);
  // Two colours follow: 0 is white, and 1 is black.
  file.writeUInt32LE(2, 46);
  file.writeUInt32LE(0xff_ff_ff, 54);
  file.set(new Uint8Array(pixels.buffer), HEADER_BYTES);
  return file;
}
