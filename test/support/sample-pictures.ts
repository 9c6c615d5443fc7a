import { randomBytes } from "node:crypto";
import sharp, { type Color, type Sharp } from "sharp";

const PLAIN = { r: 20, g: 120, b: 90, alpha: 1 };

/** Returns a single-colour picture of any size. */
export const plain = (width: number, height: number, colour: Color = PLAIN): Sharp =>
  sharp({ create: { width, height, channels: 4, background: colour } });

/** Returns a square picture like a photograph: soft shapes in many colours, with grain. */
export function photo(side: number): Sharp {
  const grain = randomBytes(side * side);
  const pixels = Buffer.alloc(side * side * 3);
  const wave = (value: number) => 110 + 90 * Math.sin(value);
  for (let at = 0; at < side * side; at += 1) {
    const [x, y] = [(at % side) / side, Math.floor(at / side) / side];
    const noise = (grain[at] ?? 0) / 8;
    pixels.set([wave(x * 27) * wave(y * 19) * 0.005 + noise, wave((x + y) * 43) + noise, x * y * 220 + noise], at * 3);
  }
  return sharp(pixels, { raw: { width: side, height: side, channels: 3 } });
}
