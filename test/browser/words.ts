import type { Page } from "playwright-core";

/** Every title and every complaint that a page has shown since, in order, each as often as it changed. */
export async function watchWords(page: Page): Promise<string[]> {
  const seen: string[] = [];
  await page.exposeFunction("saw", (words: string) => {
    if (words !== seen.at(-1)) seen.push(words);
  });
  await page.addInitScript(() => {
    const { saw } = window as unknown as { saw: (words: string) => void };
    const look = () => {
      const shown = [...document.querySelectorAll<HTMLElement>("h1, [role=alert]")].filter((one) =>
        one.checkVisibility(),
      );
      saw(shown.map((one) => one.innerText).join(" | "));
    };
    addEventListener("DOMContentLoaded", () => {
      look();
      new MutationObserver(look).observe(document.body, {
        subtree: true,
        childList: true,
        attributes: true,
        characterData: true,
      });
    });
  });
  return seen;
}
