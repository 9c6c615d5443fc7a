import { announce, byId } from "./dom.ts";
import { localize } from "./page-data.ts";

/**
 * Makes the button copy the payment link; where the browser does not allow that, selects the link for the buyer to
 * copy.
 */
export function enableCopyButton(): void {
  const [link, copy] = [byId<HTMLTextAreaElement>("link"), byId<HTMLButtonElement>("copy")];
  const text = copy.textContent ?? "";
  const showResult = (result: string): void => {
    copy.textContent = result;
    announce(result);
    setTimeout(() => {
      // Keeps the width of the longer text, so that the layout does not shift.
      copy.style.minWidth = `${copy.offsetWidth}px`;
      copy.textContent = text;
    }, 3_000);
  };
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(link.value);
      showResult(localize("copied"));
    } catch {
      link.focus();
      link.select();
      // execCommand works where the Clipboard API is not allowed, such as in web views.
      showResult(localize(document.execCommand("copy") ? "copied" : "copyFailed"));
    }
  });
}
