/** Returns an element of the server-rendered page. The same elements exist in every state. */
export function byId<E extends HTMLElement = HTMLElement>(id: string): E {
  return document.getElementById(id) as E;
}

/** Returns the data that the server wrote into the page. */
export const readData = <T>(): T => JSON.parse(byId("data").textContent ?? "{}");

/** Returns how the browser came to this page, or undefined when the browser does not report it. */
export const findNavigation = (): PerformanceNavigationTiming | undefined =>
  performance.getEntriesByType("navigation").find((entry) => entry instanceof PerformanceNavigationTiming);

/** Shows a text in an element, or hides the element when there is no text. */
export function show(element: HTMLElement, text: string | undefined): void {
  element.hidden = text === undefined;
  element.textContent = text ?? "";
}

let lastAnnouncement = "";
/** Announces a text to screen readers, unless it is the same as the last announcement. */
export function announce(text: string): void {
  if (text === lastAnnouncement) return;
  lastAnnouncement = text;
  byId("announcement").textContent = text;
}

/** Returns a button with a text and an optional icon before it. */
export function button(text: string, onClick: () => void, { kind = "", icon }: { kind?: string; icon?: string } = {}) {
  const element = document.createElement("button");
  element.type = "button";
  element.className = kind;
  if (icon) {
    const picture = document.createElement("img");
    picture.src = icon;
    picture.alt = "";
    element.append(picture);
  }
  const label = document.createElement("bdi");
  label.textContent = text;
  element.append(label);
  element.addEventListener("click", onClick);
  return element;
}

/** The server responded with an error. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * Requests a path of this service. Throws ApiError for an error response, and what `fetch` throws when the network
 * fails.
 */
export async function request<T>(
  path: string,
  { json, signal }: { json?: object | undefined; signal?: AbortSignal | undefined } = {},
): Promise<T> {
  const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(json) };
  const response = await fetch(path, { ...(json ? post : {}), ...(signal ? { signal } : {}), cache: "no-store" });
  // A truncated response throws here; it must not pass for an empty one.
  if (response.ok) return response.json();
  const body: { code?: string; message?: string } = await response.json().catch(() => ({}));
  throw new ApiError(response.status, String(body.code), String(body.message));
}
