import type { CollectData, CollectText } from "../script-data.ts";
import { tellWallet } from "./bridges.ts";
import { announce, byId, Refused, readData, request, show } from "./page.ts";

const { stage, action, optionId, backUrl, frames, texts } = readData<CollectData>();
const controls = ["fullName", "dob", "month", "year", "country", "address"] as const;
type Control = (typeof controls)[number];
/** Where a fault is shown: the date of birth is one field of three controls. */
type Place = "fullName" | "dob" | "country" | "address" | "tos";

const control = (id: Control | "tos") => byId<HTMLInputElement>(id);
/** An address has lines while it is typed, and is one text when it is sent. */
const typed = (id: Control): string =>
  control(id)
    .value.trim()
    .replace(/\s*\n\s*/g, ", ");
const placeChoices = [...document.querySelectorAll<HTMLInputElement>('input[name="place"]')];
const chosenPlace = () => placeChoices.find(({ checked }) => checked)?.value;

/** Digits as keyboards of other scripts write them: full width, Arabic, Persian. */
const typedDigits = (id: Control): string =>
  typed(id)
    .normalize("NFKC")
    .replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => String(digit.charCodeAt(0) & 15));

/** `1990-02-28`, or undefined when there is no such day, or it is yet to come. */
function readDate(): string | undefined {
  const [day, month, year] = [typedDigits("dob"), typedDigits("month"), typedDigits("year")];
  if (!/^\d{1,2}$/.test(day) || !/^\d{1,2}$/.test(month) || !/^\d{4}$/.test(year)) return undefined;
  const text = `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text) ? text : undefined;
}

function findFaults(): Map<Place, CollectText> {
  const faults = new Map<Place, CollectText>();
  if (typed("fullName") === "") faults.set("fullName", "errorName");
  if (readDate() === undefined) faults.set("dob", "errorDob");
  if (typed("country") === "") faults.set("country", "errorCountry");
  if (typed("address") === "") faults.set("address", "errorAddress");
  if (!control("tos").checked) faults.set("tos", "errorTos");
  return faults;
}

/** Which place the server means; it names the field and never the value. */
function placeOf(message: string): [Place, CollectText] | undefined {
  const id = /fields\.(\w+):/.exec(message)?.[1] ?? "";
  if (id === "fullName") return ["fullName", "errorName"];
  if (id === "dob") return ["dob", "errorDob"];
  if (id === "tosConfirmed") return ["tos", "errorTos"];
  if (id.endsWith("Country")) return ["country", "errorCountry"];
  return id.endsWith("Address") ? ["address", "errorAddress"] : undefined;
}

/** Each fault at its field, and all of them together above, where the focus goes. */
function showFaults(faults: ReadonlyMap<Place, CollectText>): void {
  for (const place of ["fullName", "dob", "country", "address", "tos"] as const) {
    const fault = faults.get(place);
    show(byId(`${place}-error`), fault && texts[fault]);
    byId(`${place}-field`).classList.toggle("wrong", fault !== undefined);
    control(place).setAttribute("aria-invalid", String(fault !== undefined));
  }
  const summary = byId("summary");
  summary.hidden = faults.size === 0;
  byId("faults").replaceChildren(
    ...[...faults].map(([place, fault]) => {
      const [item, link] = [document.createElement("li"), document.createElement("a")];
      link.href = `#${place}`;
      link.textContent = texts[fault];
      link.addEventListener("click", (event) => {
        event.preventDefault();
        control(place).focus();
      });
      item.append(link);
      return item;
    }),
  );
  if (faults.size > 0) summary.focus();
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
  const [trouble, button] = [byId("trouble"), byId("send")];
  show(trouble, undefined);
  const faults = findFaults();
  showFaults(faults);
  if (faults.size > 0) return;
  busy = true;
  button.setAttribute("aria-disabled", "true");
  button.textContent = texts.sendingData;
  try {
    await request(action, { json: { optionId, fields: readFields() } });
    finish();
  } catch (error) {
    const place = error instanceof Refused ? placeOf(error.message) : undefined;
    const isOver = error instanceof Refused && ["invalid_state", "payment_not_found"].includes(error.code);
    if (isOver) end();
    else if (place) showFaults(new Map([place]));
    else show(trouble, texts.errorSave);
  }
  busy = false;
  button.removeAttribute("aria-disabled");
  button.textContent = texts.send;
}

/** The server has it: only now the wallet is told. */
function finish(): void {
  history.replaceState(null, "");
  if (backUrl !== null) {
    location.replace(backUrl);
    return;
  }
  swap("done");
  announce(texts.dataDone);
  tellDone();
}

function end(): void {
  swap("ended");
  announce(texts.dataEnded);
  tellOver();
}

const tellDone = (): void => tellWallet({ type: "IC_COMPLETE", success: true }, frames);
const tellOver = (): void => tellWallet({ type: "IC_ERROR", error: "this payment takes no details any more" }, frames);

function swap(section: "done" | "ended"): void {
  byId("form").hidden = true;
  byId(section).hidden = false;
  byId(`${section}-title`).focus();
}

/**
 * What was typed, and of which place, is kept with this page's place in the history, in this window alone, until it is
 * sent. The consent is not: it is to be given to the words that stand there when the form is sent.
 */
function keepTyped(): void {
  const kept = history.state as Partial<Record<Control | "place", string>> | null;
  for (const id of controls) if (typeof kept?.[id] === "string") control(id).value = kept[id];
  for (const choice of placeChoices) if (kept?.place) choice.checked = choice.value === kept.place;
  byId("form").addEventListener("input", () => {
    const values = controls.map((id) => [id, control(id).value]);
    history.replaceState(Object.fromEntries([...values, ["place", chosenPlace()]]), "");
  });
}

/** Another language is another address for the same place in the history, which keeps what was typed. */
function keepOverLanguages(): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>("a[hreflang]"))
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      history.replaceState(history.state, "", link.href);
      location.reload();
    });
}

byId("again").addEventListener("click", tellDone);
if (stage === "open") {
  keepTyped();
  keepOverLanguages();
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    void send();
  });
}
if (stage === "given") tellDone();
if (stage === "ended") tellOver();
