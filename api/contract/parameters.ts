import { z } from "zod";
import { versions } from "../../payments/merchants/pin-version.ts";
import type { Schema, ToJson } from "./json-schema.ts";
import type { Operation } from "./operation.ts";

/** A parameter as OpenAPI describes it. */
export type Parameter = {
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  description: string;
  schema: Schema;
  explode?: boolean;
  example?: unknown;
  examples?: Record<string, { summary: string; value: string }>;
};

/** What a parameter means, for those whose schema does not say it. */
const descriptions: Record<string, string> = {
  id: "The id of the object that the path names.",
  merchantId: "The id of a merchant.",
  paymentId: "The id of a payment.",
  refundId: "The id of a refund.",
  keyId: "The id of an API key.",
  changeId: "The id of a requested change.",
  publicKey: "The public key.",
  cursor: "The nextCursor of the page before; leave it out for the first page.",
  limit: "How many entries a page has at most.",
  status: "Only entries with this status.",
  search: "A part of the name, or a whole id.",
  startTs: "Only entries that were created at this time or later.",
  endTs: "Only entries that were created before this time.",
  sortBy: "What the list is sorted by. amount compares minor units and ignores the unit.",
  sortDir: "The direction of the order.",
  token_symbol: "Only payments in assets with this symbol.",
  network: "Only payments on these chains (CAIP-2), separated by commas or in repeated parameters.",
  referenceId: "Only payments whose referenceId contains this text, whatever its case.",
  maxPollMs:
    "How long the response may be held until the status changes, milliseconds. The service holds it 25 s at most.",
  includePaymentInfo: "Whether the response has the payment's info. Default: false.",
};

/** The forms in which a wallet may name a payment (specification, 4.3 rule 6). */
const linkForms: NonNullable<Parameter["examples"]> = {
  id: { summary: "The payment's id", value: "pay_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0" },
  link: { summary: "A checkout link", value: "https://pay.example.test/?pid=pay_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0" },
  path: {
    summary: "A checkout link with the id in its path",
    value: "https://pay.example.test/pay_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0",
  },
  pairing: {
    summary: "A pairing URI with the encoded link",
    value: "wc:0a1b@2?pay=https%3A%2F%2Fpay.example.test%2F%3Fpid%3Dpay_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0",
  },
};

const paymentLink: Parameter = {
  name: "id",
  in: "path",
  required: true,
  description:
    "The id of a payment, or a payment link of this service: a checkout URL with the id in its path or in pid, or a pairing URI whose pay holds such a URL. Percent-encode it.",
  schema: { type: "string", maxLength: 4_096 },
  examples: linkForms,
};

/** The members of an object's JSON Schema that parameters are made of. */
const objectSchema = z.object({
  properties: z.record(z.string(), z.record(z.string(), z.unknown())).default({}),
  required: z.array(z.string()).default([]),
});

/** Returns the parameters of an operation: of its path, its query and its headers. */
export function listParameters(operation: Operation, toJson: ToJson): Parameter[] {
  const { access, idempotency, schemas } = operation;
  const inPath = listMembers(schemas.params, "path", toJson);
  return [
    ...(access === "gateway" ? inPath.map((one) => (one.name === "id" ? paymentLink : one)) : inPath),
    ...listMembers(schemas.query, "query", toJson),
    ...(access === "merchant" ? [merchantHeader] : []),
    ...(operation.merchantNarrows ? [narrowingHeader] : []),
    ...(idempotency ? [{ ...idempotencyHeader, required: idempotency === "required" }] : []),
    versionHeader,
  ];
}

function listMembers(schema: z.ZodType | undefined, location: "path" | "query", toJson: ToJson): Parameter[] {
  if (!schema) return [];
  const { properties, required } = objectSchema.parse(toJson(schema, "input"));
  return Object.entries(properties).map(([name, property]) => {
    // No example: the documentation page would send it with every request.
    const { commaSeparated, description, example: _example, ...described } = toRepeated(property);
    return {
      name,
      in: location,
      required: location === "path" || required.includes(name),
      description: String(description ?? descriptions[name] ?? `The ${name}.`),
      schema: described,
      ...(commaSeparated === true ? { explode: false } : {}),
    };
  });
}

/** Describes a parameter that may be repeated as an array: one value and several values are the same to a client. */
function toRepeated(property: Schema): Schema {
  const { anyOf, ...rest } = property;
  const list = Array.isArray(anyOf) ? anyOf.find((one) => one.type === "array") : undefined;
  return list ? { ...list, ...rest } : property;
}

const text = { in: "header", required: false } as const;
const merchantHeader: Parameter = {
  ...text,
  name: "Merchant-Id",
  required: true,
  description: "The merchant of the call.",
  schema: { type: "string" },
  example: "mrch_2c6f0f5e7a3b4d1c9e8f7a6b5c4d3e2f",
};
// Without an example: the documentation page sends an example unless its reader removes it.
const narrowingHeader: Parameter = {
  ...text,
  name: merchantHeader.name,
  description: "Narrows the list to this merchant, unless the query has a merchantId.",
  schema: merchantHeader.schema,
};
const idempotencyHeader: Parameter = {
  ...text,
  name: "Idempotency-Key",
  description:
    "A text of your own for each thing to be done, such as a UUID. Repeated requests with the same key are executed once, and get the same response for 24 hours.",
  schema: { type: "string", pattern: "^[ -~]{1,255}$" },
  example: "7d9f3c1e-5b2a-4f86-9c0d-1e2f3a4b5c6d",
};
const versionHeader: Parameter = {
  ...text,
  name: "Svc-Version",
  description: "The version of the contract; default: the account's version. Only a later version can be named.",
  schema: { type: "string", enum: versions },
};
