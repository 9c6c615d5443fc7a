/** A rectangle of a picture, pixels. */
export type Box = { x: number; y: number; width: number; height: number };

export const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** Returns an SVG text that begins at a point. */
export const writeText = (x: number, y: number, text: string, attributes = ""): string =>
  `<text x="${Math.round(x)}" y="${Math.round(y)}"${attributes === "" ? "" : ` ${attributes}`}>${escapeXml(text)}</text>`;

/** Breaks a text into lines of at most `most` characters, where it has spaces. */
export function wrap(text: string, most: number): string[] {
  if (text.length <= most) return [text];
  const at = text.lastIndexOf(" ", most);
  return at === -1 ? [shortenTo(text, most)] : [text.slice(0, at), ...wrap(text.slice(at + 1), most)];
}

/** Cuts the end of a text that has more than `most` characters. */
export function shortenTo(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(1, Math.floor(most) - 1))}…`;
}
