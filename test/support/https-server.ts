import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import selfsigned from "selfsigned";
import { addCleanup } from "./cleanups.ts";

/** Starts an HTTPS server on a free port, of all local addresses or one, with a self-signed certificate for `names`. */
export async function startHttps(names: readonly string[], listener: RequestListener, address = "0.0.0.0") {
  const altNames = names.map((value) => ({ type: 2 as const, value }));
  const certificate = await selfsigned.generate([{ name: "commonName", value: names[0] ?? "test" }], {
    algorithm: "sha256",
    extensions: [{ name: "subjectAltName", altNames }],
  });
  const server = createServer({ key: certificate.private, cert: certificate.cert }, listener);
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  addCleanup(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, ca: certificate.cert };
}
