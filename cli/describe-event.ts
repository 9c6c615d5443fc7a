import type { Event } from "../client/index.ts";
import { formatTime } from "./format-table.ts";

/** The members of an event that name what it is about; the first one that it has. */
const subjects = ["refund_id", "payment_id", "change_id", "public_key", "endpoint_id"];

/** Returns the id of what an event is about. */
export function subjectOf({ data }: Event): string {
  const id = subjects.map((name) => data[name]).find((one) => typeof one === "string");
  return String(id ?? "");
}

/** Returns the columns of an event: when it happened, its type, what it is about and its id. */
export function describeEvent(event: Event): [time: string, type: string, subject: string, id: string] {
  return [formatTime(event.created_at), event.type, subjectOf(event), event.id];
}
