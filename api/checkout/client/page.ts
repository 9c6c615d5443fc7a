/** An element of the page that the server has written; which ones there are is the same in every state. */
export function byId<E extends HTMLElement = HTMLElement>(id: string): E {
  return document.getElementById(id) as E;
}

/** What the server has told. */
export const readData = <T>(): T => JSON.parse(byId("data").textContent ?? "{}") as T;

/** Shows a text in an element, or hides the element. */
export function show(element: HTMLElement, text: string | undefined): void {
  element.hidden = text === undefined;
  element.textContent = text ?? "";
}

let last = "";
/** Tells a screen reader, once: the same again says nothing new. */
export function announce(text: string): void {
  if (text === last) return;
  last = text;
  byId("said").textContent = text;
}

/** A button with a text, perhaps behind a picture. */
export function button(text: string, act: () => void, { kind = "", icon }: { kind?: string; icon?: string } = {}) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = kind;
  if (icon) {
    const picture = document.createElement("img");
    picture.src = icon;
    picture.alt = "";
    made.append(picture);
  }
  const label = document.createElement("bdi");
  label.textContent = text;
  made.append(label);
  made.addEventListener("click", act);
  return made;
}

/** The server has answered, and it was no success. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Asks a route of ours. Throws Refused, or whatever a network throws that is away. */
export async function request<T>(
  path: string,
  { json, signal }: { json?: object | undefined; signal?: AbortSignal | undefined } = {},
): Promise<T> {
  const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(json) };
  const response = await fetch(path, { ...(json ? post : {}), ...(signal ? { signal } : {}), cache: "no-store" });
  // An answer that is cut off is no answer, and not an empty one.
  if (response.ok) return (await response.json()) as T;
  const body = (await response.json().catch(() => ({}))) as { code?: string; message?: string };
  throw new Refused(response.status, String(body.code), String(body.message));
}
