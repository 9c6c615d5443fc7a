import { createHmac } from "node:crypto";
import type { Terminal } from "./terminal.ts";

/**
 * Returns the secret with which `pay listen` signs: that of the environment, else one that is derived from the API key, so
 * that it stays the same and is stored nowhere. The key does not follow from it.
 */
export function findWebhookSecret(env: Terminal["env"], apiKey: string): string {
  return env["PAY_WEBHOOK_SECRET"] || `whsec_${createHmac("sha256", apiKey).update("pay listen").digest("base64")}`;
}
