import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** The size of the palette, for two pixels per byte; other colours are mapped to the nearest one. */
const MOST = 16;
/** Colours that are closer than this count as one, except at the edges of letters. */
const APART = 20 ** 2;

/** Converts a screenshot to a palette: pages have few colours, and the documentation should stay small. */
export function shrinkPng(png: Buffer): Buffer {
  const { width, height, pixels } = decode(png);
  const counts = new Map<number, number>();
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const palette = pickPalette(counts);
  const places = new Map([...counts.keys()].map((colour) => [colour, findNearest(palette, colour)]));
  const length = Math.ceil(width / 2) + 1;
  const rows = Buffer.alloc(length * height);
  for (const [at, colour] of pixels.entries()) {
    const [row, column] = [Math.floor(at / width), at % width];
    const place = row * length + 1 + (column >> 1);
    rows[place] = (rows[place] ?? 0) | ((places.get(colour) ?? 0) << (column % 2 === 0 ? 4 : 0));
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([4, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  const data = deflateSync(rows, { level: 9, memLevel: 9 });
  const parts = [chunk("IHDR", header), chunk("PLTE", colours), chunk("IDAT", data)];
  return Buffer.concat([SIGNATURE, ...parts, chunk("IEND", Buffer.alloc(0))]);
}

/** Returns the colours that cover most of the picture, without near duplicates. */
function pickPalette(counts: ReadonlyMap<number, number>): number[] {
  const palette: number[] = [];
  for (const [colour] of [...counts].toSorted((a, b) => b[1] - a[1]))
    if (palette.length < MOST && palette.every((one) => distance(one, colour) >= APART)) palette.push(colour);
  return palette;
}

/** Decodes a PNG as browsers write it: three or four bytes per pixel, not interlaced. */
function decode(png: Buffer): { width: number; height: number; pixels: Uint32Array } {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const step = png[25] === 6 ? 4 : 3;
  const data: Buffer[] = [];
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12)
    if (png.toString("latin1", at + 4, at + 8) === "IDAT")
      data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  const packed = inflateSync(Buffer.concat(data));
  const length = width * step;
  const pixels = new Uint32Array(width * height);
  let above = Buffer.alloc(length);
  for (let row = 0; row < height; row += 1) {
    const line = packed.subarray(row * (length + 1) + 1, (row + 1) * (length + 1));
    unfilter(line, above, packed[row * (length + 1)] ?? 0, step);
    for (let x = 0; x < width; x += 1) pixels[row * width + x] = line.readUIntBE(x * step, 3);
    above = line;
  }
  return { width, height, pixels };
}

function unfilter(line: Buffer, above: Buffer, kind: number, step: number): void {
  for (let at = 0; at < line.length; at += 1) {
    const left = at < step ? 0 : (line[at - step] ?? 0);
    const up = above[at] ?? 0;
    const corner = at < step ? 0 : (above[at - step] ?? 0);
    const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][kind] ?? 0;
    line[at] = ((line[at] ?? 0) + guess) & 255;
  }
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [toLeft, toUp, toCorner] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

const distance = (one: number, other: number): number =>
  [16, 8, 0].reduce((sum, shift) => sum + (((one >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);

function findNearest(palette: readonly number[], colour: number): number {
  let best = 0;
  for (const [place, one] of palette.entries())
    if (distance(one, colour) < distance(palette[best] ?? 0, colour)) best = place;
  return best;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
