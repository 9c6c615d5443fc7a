import type { CollectData, CollectText } from "../pages/script-data.ts";
import { ApiError, announce, byId, readData, request, show } from "./dom.ts";
import { notifyWallet } from "./wallet-bridges.ts";

const { stage, action, optionId, backUrl, frames, texts } = readData<CollectData>();
const controls = ["fullName", "dob", "month", "year", "country", "address"] as const;
type Control = (typeof controls)[number];
/** Where an error is shown: the date of birth is one field with three controls. */
type Place = "fullName" | "dob" | "country" | "address" | "tos";

const control = (id: Control | "tos") => byId<HTMLInputElement>(id);
/** Returns the trimmed value; the lines of an address are joined by commas. */
const typed = (id: Control): string =>
  control(id)
    .value.trim()
    .replace(/\s*\n\s*/g, ", ");
const placeChoices = [...document.querySelectorAll<HTMLInputElement>('input[name="place"]')];
const chosenPlace = () => placeChoices.find(({ checked }) => checked)?.value;

/** Returns the value with full-width, Arabic and Persian digits converted to ASCII digits. */
const typedDigits = (id: Control): string =>
  typed(id)
    .normalize("NFKC")
    .replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => String(digit.charCodeAt(0) & 15));

/** Returns the date of birth as `1990-02-28`, or undefined when the calendar has no such day. */
function readDate(): string | undefined {
  const [day, month, year] = [typedDigits("dob"), typedDigits("month"), typedDigits("year")];
  if (!/^\d{1,2}$/.test(day) || !/^\d{1,2}$/.test(month) || !/^\d{4}$/.test(year)) return undefined;
  const text = `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text) ? text : undefined;
}

function validateForm(): Map<Place, CollectText> {
  const errors = new Map<Place, CollectText>();
  if (typed("fullName") === "") errors.set("fullName", "errorName");
  if (readDate() === undefined) errors.set("dob", "errorDob");
  if (typed("country") === "") errors.set("country", "errorCountry");
  if (typed("address") === "") errors.set("address", "errorAddress");
  if (!control("tos").checked) errors.set("tos", "errorTos");
  return errors;
}

/** Returns the place that the server's error message names; the message names the field and never its value. */
function findPlace(message: string): [Place, CollectText] | undefined {
  const id = /fields\.(\w+):/.exec(message)?.[1] ?? "";
  if (id === "fullName") return ["fullName", "errorName"];
  if (id === "dob") return ["dob", "errorDob"];
  if (id === "tosConfirmed") return ["tos", "errorTos"];
  if (id.endsWith("Country")) return ["country", "errorCountry"];
  return id.endsWith("Address") ? ["address", "errorAddress"] : undefined;
}

/** Shows each error at its field and all of them in a summary above, which takes the focus. */
function showErrors(errors: ReadonlyMap<Place, CollectText>): void {
  for (const place of ["fullName", "dob", "country", "address", "tos"] as const) {
    const error = errors.get(place);
    show(byId(`${place}-error`), error && texts[error]);
    byId(`${place}-field`).classList.toggle("wrong", error !== undefined);
    control(place).setAttribute("aria-invalid", String(error !== undefined));
  }
  const summary = byId("summary");
  summary.hidden = errors.size === 0;
  byId("errors").replaceChildren(
    ...[...errors].map(([place, error]) => {
      const [item, link] = [document.createElement("li"), document.createElement("a")];
      link.href = `#${place}`;
      link.textContent = texts[error];
      link.addEventListener("click", (event) => {
        event.preventDefault();
        control(place).focus();
      });
      item.append(link);
      return item;
    }),
  );
  if (errors.size > 0) summary.focus();
}

function readFields(): { id: string; value: string }[] {
  const prefix = chosenPlace() === "birth" ? "pob" : "por";
  return [
    { id: "fullName", value: typed("fullName") },
    { id: "dob", value: readDate() ?? "" },
    { id: `${prefix}Country`, value: typed("country") },
    { id: `${prefix}Address`, value: typed("address") },
    { id: "tosConfirmed", value: "true" },
  ];
}

let busy = false;

async function send(): Promise<void> {
  if (busy) return;
  const [saveError, button] = [byId("save-error"), byId("send")];
  show(saveError, undefined);
  const errors = validateForm();
  showErrors(errors);
  if (errors.size > 0) return;
  busy = true;
  button.setAttribute("aria-disabled", "true");
  button.textContent = texts.sendingData;
  try {
    await request(action, { json: { optionId, fields: readFields() } });
    finish();
  } catch (error) {
    const place = error instanceof ApiError ? findPlace(error.message) : undefined;
    const isOver = error instanceof ApiError && ["invalid_state", "payment_not_found"].includes(error.code);
    if (isOver) end();
    else if (place) showErrors(new Map([place]));
    else show(saveError, texts.errorSave);
  }
  busy = false;
  button.removeAttribute("aria-disabled");
  button.textContent = texts.send;
}

/** Runs once the server has stored the data; the wallet is notified only now. */
function finish(): void {
  history.replaceState(null, "");
  if (backUrl !== null) {
    location.replace(backUrl);
    return;
  }
  swap("done");
  announce(texts.dataDone);
  notifyDone();
}

function end(): void {
  swap("ended");
  announce(texts.dataEnded);
  notifyEnded();
}

const notifyDone = (): void => notifyWallet({ type: "IC_COMPLETE", success: true }, frames);
const notifyEnded = (): void =>
  notifyWallet({ type: "IC_ERROR", error: "this payment takes no details any more" }, frames);

function swap(section: "done" | "ended"): void {
  byId("form").hidden = true;
  byId(section).hidden = false;
  byId(`${section}-title`).focus();
}

/**
 * Keeps the typed values and the chosen place in this history entry of this window until the form is sent. The consent
 * is not kept: the buyer gives it to the text that is shown when the form is sent.
 */
function keepTyped(): void {
  const kept: Partial<Record<Control | "place", string>> | null = history.state;
  for (const id of controls) if (typeof kept?.[id] === "string") control(id).value = kept[id];
  for (const choice of placeChoices) if (kept?.place) choice.checked = choice.value === kept.place;
  byId("form").addEventListener("input", () => {
    const values = controls.map((id) => [id, control(id).value]);
    history.replaceState(Object.fromEntries([...values, ["place", chosenPlace()]]), "");
  });
}

/** Switches the language within the same history entry, so that the typed values are kept. */
function keepAcrossLanguages(): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>("a[hreflang]"))
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      history.replaceState(history.state, "", link.href);
      location.reload();
    });
}

byId("renotify").addEventListener("click", notifyDone);
if (stage === "open") {
  keepTyped();
  keepAcrossLanguages();
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    void send();
  });
}
if (stage === "given") notifyDone();
if (stage === "ended") notifyEnded();
