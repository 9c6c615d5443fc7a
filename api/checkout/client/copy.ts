import { announce, byId } from "./page.ts";
import { words } from "./told.ts";

/** Copies the payment link; where the browser does not allow it, the link is selected for the buyer to copy. */
export function offerCopy(): void {
  const [link, copy] = [byId<HTMLTextAreaElement>("link"), byId<HTMLButtonElement>("copy")];
  const text = copy.textContent ?? "";
  const say = (told: string): void => {
    copy.textContent = told;
    announce(told);
    setTimeout(() => {
      // As wide as it is now: what is beside it stays where it is.
      copy.style.minWidth = `${copy.offsetWidth}px`;
      copy.textContent = text;
    }, 3_000);
  };
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(link.value);
      say(words("copied"));
    } catch {
      link.focus();
      link.select();
      // The old way works where the new one is not allowed, such as in web views.
      say(words(document.execCommand("copy") ? "copied" : "copyFailed"));
    }
  });
}
