import { type Selectable, sql } from "kysely";
import type { Db, Mode, Tables } from "../tables.ts";
import type { DeliveryRow } from "./webhook-deliveries.ts";

type Change = Selectable<Tables["destination_change"]>;

/** A due event of a change of a destination, with everything that its payload may contain. */
export type DueDestinationEvent = Pick<DeliveryRow, "id" | "type" | "at" | "attempts_made"> & {
  change_id: string;
  mode: Mode;
} & Omit<Change, "id" | "state">;

/** Returns the due events of changes of an endpoint, oldest first, without those in `without`, which are being sent already. */
export async function listDueDestinationEvents(
  db: Db,
  args: { endpointId: string; now: Date; without: readonly string[]; limit: number },
): Promise<DueDestinationEvent[]> {
  const { rows } = await sql<DueDestinationEvent>`
    select d.id, d.type, d.at, d.attempts_made, d.change_id, m.mode, c.merchant_id, c.destination_id, c.asset, c.before,
      c.after, c.requester_kind, c.requester_id, c.requester_address, c.created_at, c.applies_at, c.decider_kind,
      c.decider_id, c.decider_address, c.decided_at, c.rejection, c.applied_at
    from (
      select * from webhook_delivery
      where endpoint_id = ${args.endpointId} and due_at <= ${args.now} and change_id is not null
        and id <> all(${args.without}::text[])
      order by due_at limit ${args.limit}
    ) d
    join destination_change c on c.id = d.change_id
    join merchant m on m.id = c.merchant_id
    order by d.due_at, d.state_version`.execute(db);
  return rows;
}
