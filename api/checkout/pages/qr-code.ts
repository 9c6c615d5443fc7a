import { encode } from "uqr";
import { type Html, html } from "./html.ts";

/** Width of the white border, modules: scanners need it on any background. */
const QUIET_ZONE = 4;

/**
 * Returns a link as a QR code: an SVG with one path, black on white in every theme. Level M tolerates a scratched
 * screen.
 */
export function qrCode(link: string, name: string): Html {
  const { data, size } = encode(link, { ecc: "M", border: QUIET_ZONE });
  const path = data.map(writeRow).join("");
  return html`<svg class="qr" role="img" aria-labelledby="qr-name" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><title id="qr-name">${name}</title><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${path}"/></svg>`;
}

/** Writes a run of dark modules as one rectangle, which halves the size. */
function writeRow(row: readonly boolean[], y: number): string {
  const text = row.map((dark) => (dark ? "#" : " ")).join("");
  return [...text.matchAll(/#+/g)]
    .map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`)
    .join("");
}
