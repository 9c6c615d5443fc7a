import { encode } from "uqr";
import { type Html, html } from "./html.ts";

/** Width of the white border, modules: scanners need it on any background. */
const QUIET_ZONE = 4;
/** One of the eight masks. Payment links differ in random digits, so any mask suits them; rating all eight takes a millisecond. */
const MASK = 3;

/**
 * Returns a link as a QR code: an SVG with one path, black on white in every theme. Level M tolerates a scratched
 * screen.
 */
export function qrCode(link: string, name: string): Html {
  const { data, size: modules } = encode(link, { ecc: "M", border: 0, maskPattern: MASK });
  const path = data.map(writeRow).join("");
  const size = modules + 2 * QUIET_ZONE;
  return html`<svg class="qr" role="img" aria-labelledby="qr-name" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><title id="qr-name">${name}</title><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path transform="translate(${QUIET_ZONE} ${QUIET_ZONE})" d="${path}"/></svg>`;
}

/** Writes a run of dark modules as one rectangle, which halves the size. */
function writeRow(row: readonly boolean[], y: number): string {
  let path = "";
  for (let from = row.indexOf(true); from >= 0; ) {
    const end = row.indexOf(false, from);
    const to = end < 0 ? row.length : end;
    path += `M${from} ${y}h${to - from}v1h${from - to}z`;
    from = row.indexOf(true, to);
  }
  return path;
}
