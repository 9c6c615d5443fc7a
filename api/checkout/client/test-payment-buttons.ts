import type { StatusPayload } from "../pages/script-data.ts";
import { ApiError, byId } from "./dom.ts";
import { callApi, data } from "./page-data.ts";
import { apply, onChange, status } from "./page-state.ts";

/** The new status, or the address of the page where the buyer gives the data that the option requires. */
type TestWalletResponse = StatusPayload | { collectUrl: string };

/** Connects the buttons of a test payment: one pays as a wallet does, each other button requests one state change. */
export function startTestConsole(): void {
  const panel = document.getElementById("console");
  if (!panel) return;
  const buttons = [...panel.querySelectorAll("button")];
  const dataLink = byId<HTMLAnchorElement>("console-data");
  const messages = ["console-failed", "console-cannot", "console-asks"] as const;
  const showMessage = (shown: (typeof messages)[number] | undefined): void => {
    for (const id of messages) byId(id).hidden = id !== shown;
    dataLink.hidden = shown !== "console-asks";
  };
  for (const button of buttons)
    button.addEventListener("click", async () => {
      showMessage(undefined);
      const { to } = button.dataset;
      try {
        const response = await (to
          ? callApi<StatusPayload>("/simulate", { json: { status: to } })
          : callApi<TestWalletResponse>("/test-wallet", { json: {} }));
        if ("status" in response) return apply(response);
        dataLink.href = `${response.collectUrl}?${data.dataQuery}`;
        showMessage("console-asks");
      } catch (error) {
        const cannot = !to && error instanceof ApiError && error.code === "invalid_params";
        showMessage(cannot ? "console-cannot" : "console-failed");
      }
    });
  onChange(({ isFinal }) => {
    for (const button of buttons) button.hidden = button.dataset["from"] !== status();
    byId("console-text").hidden = isFinal;
    byId("console-none").hidden = !isFinal;
    showMessage(undefined);
  });
}
