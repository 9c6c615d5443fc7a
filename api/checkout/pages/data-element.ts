import { asHtml, type Html } from "../../../runtime/html.ts";

/**
 * Returns an element that holds JSON for the page's script: the data, after the texts as its member `texts`. Browsers do not run
 * it, and no text in it can close the element. An object of texts is written once, so it must never change.
 */
export function dataElement(id: string, data: object, texts: object): Html {
  const writtenTexts = written.get(texts) ?? writeJson(texts);
  written.set(texts, writtenTexts);
  return asHtml(
    `<script type="application/json" id="${id}">{"texts":${writtenTexts},${writeJson(data).slice(1)}</script>`,
  );
}

const written = new WeakMap<object, string>();

const writeJson = (data: object): string => JSON.stringify(data).replaceAll("<", "\\u003c");
