import { generateKeyPairSync, randomUUID } from "node:crypto";
import { CliError } from "../cli-error.ts";
import { takeFirst } from "../take-first.ts";
import type { Scenario, Steps } from "./steps.ts";

/**
 * Runs a scenario on a merchant of its own, so that the person's merchants stay as they are, and deletes it, also when the
 * scenario fails. A process that ends in between leaves the merchant: the note names it.
 */
async function withNewMerchant(steps: Steps, work: (merchantId: string) => Promise<string>): Promise<string> {
  const { client, note } = steps;
  const merchantName = `pay trigger ${randomUUID()}`;
  const { merchant } = await client.merchants.create({ merchantName, merchantEmail: "pay-trigger@example.com" });
  const { id } = merchant;
  note(`created the merchant ${id}`);
  try {
    return await work(id);
  } finally {
    await client.merchants.delete(id);
    note("deleted it");
  }
}

/** Adds a settlement destination to a new merchant; a first destination applies at once. */
export const changeDestination: Scenario = async (steps) => {
  const { client, merchantId, note } = steps;
  const [first] = (await client.merchants.get(merchantId)).merchant.settlements.crypto;
  if (!first) throw new CliError(`the merchant ${merchantId} has no settlement destination to copy`);
  return withNewMerchant(steps, async (id) => {
    await client.settlements.create(id, { settlements: [{ asset: first.asset, destination: first.destination }] });
    const [change] = await takeFirst(client.settlements.listChanges(id), 1);
    note(`added a destination of ${first.asset}`);
    return change?.changeId ?? "";
  });
};

/** Registers an approval key of a new merchant and revokes it. */
export const changeApprovalKey: Scenario = (steps) =>
  withNewMerchant(steps, async (id) => {
    const { x = "" } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
    const publicKey = Buffer.from(x, "base64url").toString("hex");
    await steps.client.approvalKeys.register(id, publicKey);
    await steps.client.approvalKeys.revoke(id, publicKey);
    steps.note(`registered and revoked the approval key ${publicKey}`);
    return publicKey;
  });
