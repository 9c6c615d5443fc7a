import { randomUUID } from "node:crypto";
import type { Scenario } from "./steps.ts";

/** Registers an endpoint, changes it, has a test event sent to it, and deletes it. A process that ends in between leaves it. */
export const changeEndpoint: Scenario = async ({ client, note }) => {
  // A name that no server has (RFC 6761), and a type that test mode does not produce: the service sends nothing to others.
  const url = `https://${randomUUID()}.invalid/`;
  const { webhookEndpoint } = await client.webhookEndpoints.create({ url, eventTypes: ["payment.settled"] });
  const { id } = webhookEndpoint;
  note(`registered ${id}`);
  try {
    await client.webhookEndpoints.update(id, { payload: "thin" });
    await client.webhookEndpoints.test(id);
    note("changed it and requested a test event");
  } finally {
    await client.webhookEndpoints.delete(id);
    note("deleted it");
  }
  return id;
};
