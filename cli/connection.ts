import { PaymentClient } from "../client/index.ts";
import { type CredentialOptions, type Credentials, findCredentials } from "./find-credentials.ts";
import { findOnlyMerchant } from "./find-merchant.ts";
import type { Terminal } from "./terminal.ts";
import { findWebhookSecret } from "./webhook-secret.ts";

/** The service as a command reaches it. */
export type Connection = Credentials & {
  client: PaymentClient;
  /** With which `pay listen` signs. */
  webhookSecret: string;
};

/** A connection that has one merchant. */
export type MerchantConnection = Connection & { merchantId: string };

/** Returns the client of these credentials. */
export function openClient({
  url,
  apiKey,
  merchantId,
}: Pick<Credentials, "url" | "apiKey" | "merchantId">): PaymentClient {
  return new PaymentClient({ baseUrl: url, apiKey, ...(merchantId === undefined ? {} : { merchantId }) });
}

/** Connects a command to the service. Throws CliError when no credentials are found. */
export async function connect(terminal: Terminal, options: CredentialOptions): Promise<Connection> {
  const credentials = await findCredentials(terminal, options);
  const webhookSecret = findWebhookSecret(terminal.env, credentials.apiKey);
  return { ...credentials, client: openClient(credentials), webhookSecret };
}

/** Connects a command that acts for one merchant. */
export async function connectMerchant(terminal: Terminal, options: CredentialOptions): Promise<MerchantConnection> {
  const connection = await connect(terminal, options);
  const merchantId = connection.merchantId ?? (await findOnlyMerchant(connection.client));
  return { ...connection, merchantId, client: openClient({ ...connection, merchantId }) };
}
