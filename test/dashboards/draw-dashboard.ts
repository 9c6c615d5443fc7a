import { drawPanel } from "./draw-panel.ts";
import type { FilledDashboard } from "./run-dashboards.ts";
import { escapeXml } from "./svg-text.ts";

/** Width of one of the 24 columns of Grafana's grid, and height of one of its rows, pixels. */
const COLUMN = 44;
const ROW = 25;
const GAP = 4;

const style = `text{font:10px sans-serif;fill:#333}.panel{fill:#fff;stroke:#ddd}.title{font-weight:bold}.row{font-size:13px;font-weight:bold}
.stat{font-size:20px;text-anchor:middle;fill:#37872d}.none{text-anchor:middle;fill:#777}.end{text-anchor:end;font-size:9px}
.tick{text-anchor:middle;font-size:9px;fill:#777}.axis{stroke:#bbb;fill:none}.grid{stroke:#eee;fill:none}.line{fill:none;stroke-width:1.3}`;

/** Draws a dashboard as SVG, with the layout of its file. */
export function drawDashboard({ title, panels, answers }: FilledDashboard): string {
  const width = 24 * COLUMN;
  const height = Math.max(...panels.map(({ gridPos }) => gridPos.y + gridPos.h)) * ROW + 34;
  const parts = panels.map((panel) => {
    const { x, y, w, h } = panel.gridPos;
    const box = { x: x * COLUMN, y: y * ROW + 30, width: w * COLUMN - GAP, height: h * ROW - GAP };
    if (panel.type === "row") return `<text x="4" y="${box.y + 15}" class="row">${escapeXml(panel.title)}</text>`;
    return drawPanel(panel, answers.get(panel) ?? [], box);
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="Dashboard ${escapeXml(title)}">`,
    `<style>${style}</style><rect width="100%" height="100%" fill="#f4f5f5"/>`,
    `<text x="4" y="20" style="font-size:16px;font-weight:bold">${escapeXml(title)}</text>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}
