import type { News } from "../script-data.ts";
import { byId, Refused } from "./page.ts";
import { apply, onChange, status } from "./state.ts";
import { ask, data } from "./told.ts";

/** What became of it; or where the buyer says who he is, and comes back from. */
type Answer = News | { collectUrl: string };

/** The buttons of a test payment: one pays as a wallet would, each other one asks the server for one move. */
export function startConsole(): void {
  const panel = document.getElementById("console");
  if (!panel) return;
  const buttons = [...panel.querySelectorAll("button")];
  const give = byId<HTMLAnchorElement>("console-data");
  const sayings = ["console-failed", "console-cannot", "console-asks"] as const;
  const say = (what: (typeof sayings)[number] | undefined): void => {
    for (const id of sayings) byId(id).hidden = id !== what;
    give.hidden = what !== "console-asks";
  };
  for (const one of buttons)
    one.addEventListener("click", async () => {
      say(undefined);
      const { to } = one.dataset;
      try {
        const answer = await (to
          ? ask<News>("/simulate", { json: { status: to } })
          : ask<Answer>("/test-wallet", { json: {} }));
        if ("status" in answer) return apply(answer);
        give.href = `${answer.collectUrl}?${data.dataQuery}`;
        say("console-asks");
      } catch (error) {
        const cannot = !to && error instanceof Refused && error.code === "invalid_params";
        say(cannot ? "console-cannot" : "console-failed");
      }
    });
  onChange(({ isFinal }) => {
    for (const one of buttons) one.hidden = one.dataset.from !== status();
    byId("console-text").hidden = isFinal;
    byId("console-none").hidden = !isFinal;
    say(undefined);
  });
}
