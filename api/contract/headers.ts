import { versions } from "../../payments/merchants/pin-version.ts";
import type { Schema } from "./json-schema.ts";

/** Headers of responses, by the name of their component. */
export const responseHeaders = {
  "Svc-Version": {
    description: "The version of the contract that served the call.",
    schema: { type: "string", enum: versions },
  },
  "X-Request-Id": {
    description: "Identifies the request in the service's log. Name it when you ask the operator.",
    schema: { type: "string" },
  },
  "Idempotent-Replayed": {
    description: "true when an earlier response to the same Idempotency-Key is returned again.",
    schema: { type: "string", enum: ["true"] },
  },
  "RateLimit-Limit": {
    description: "Requests per minute, where a limit applies.",
    schema: { type: "integer", format: "int32" },
  },
  "RateLimit-Remaining": {
    description: "Requests that are left until the limit is reset.",
    schema: { type: "integer", format: "int32" },
  },
  "RateLimit-Reset": {
    description: "Seconds until the limit is reset.",
    schema: { type: "integer", format: "int32" },
  },
  "Retry-After": {
    description: "Seconds after which the request may be repeated.",
    schema: { type: "integer", format: "int32" },
  },
  "WWW-Authenticate": { description: "The challenge of RFC 9110.", schema: { type: "string" } },
} as const satisfies Record<string, { description: string; schema: Schema }>;

export type ResponseHeader = keyof typeof responseHeaders;

/** Returns references to header components. */
export function referHeaders(names: readonly ResponseHeader[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
