import type { News } from "../script-data.ts";
import { byId } from "./page.ts";
import { apply, onChange, status } from "./state.ts";
import { ask } from "./told.ts";

/** The buttons of a test payment: each asks the server for one move. */
export function startConsole(): void {
  const panel = document.getElementById("console");
  if (!panel) return;
  const buttons = [...panel.querySelectorAll("button")];
  const problem = byId("console-problem");
  for (const one of buttons)
    one.addEventListener("click", async () => {
      problem.hidden = true;
      try {
        apply(await ask<News>("/simulate", { json: { status: one.dataset.to } }));
      } catch {
        problem.hidden = false;
      }
    });
  onChange(({ isFinal }) => {
    for (const one of buttons) one.hidden = one.dataset.from !== status();
    byId("console-text").hidden = isFinal;
    byId("console-none").hidden = !isFinal;
  });
}
