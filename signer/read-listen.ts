import { ConfigError, type SignerConfig } from "../runtime/config.ts";
import { readCertificates } from "./open-signer.ts";
import type { Listen } from "./server.ts";

/** Reads where the signer listens: `unix:/path`, or `https://host:port` with its certificates. Throws ConfigError. */
export function readListen(config: SignerConfig): Listen {
  const address = config.SIGNER_LISTEN;
  if (address.startsWith("unix:/")) return { socketPath: address.slice("unix:".length) };
  const url = URL.parse(address);
  if (url?.protocol !== "https:") throw new ConfigError("SIGNER_LISTEN: expected unix:/path or https://host:port");
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return { host, port: Number(url.port || 443), readCertificates: () => readCertificates(config) };
}
