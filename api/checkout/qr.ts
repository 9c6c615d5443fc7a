import { encode } from "uqr";
import { type Html, html } from "./html.ts";

/** Modules of white around the code: scanners need them, whatever is behind the picture. */
const QUIET = 4;

/** A link as a QR code: an SVG of one path, black on white in every theme. Level M bears a scratch. */
export function qrCode(link: string, name: string): Html {
  const { data, size } = encode(link, { ecc: "M", border: QUIET });
  const path = data.map(writeRow).join("");
  return html`<svg class="qr" role="img" aria-labelledby="qr-name" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><title id="qr-name">${name}</title><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${path}"/></svg>`;
}

/** Dark modules beside each other are one rectangle: half the bytes. */
function writeRow(row: readonly boolean[], y: number): string {
  const text = row.map((dark) => (dark ? "#" : " ")).join("");
  return [...text.matchAll(/#+/g)]
    .map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`)
    .join("");
}
