import { chmodSync, rmSync } from "node:fs";
import type { Socket } from "node:net";
import { type Server, TLSSocket } from "node:tls";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Log } from "../runtime/log.ts";
import { describeBriefly } from "../runtime/redaction.ts";
import { inSharedSpan } from "../runtime/tracing/spans.ts";
import { type Actor, workerActor } from "./audit/entries.ts";
import { readAuditHead } from "./audit/heads.ts";
import { authorizePayouts } from "./authorize-payouts.ts";
import { type Certificates, isSameCertificates, openCertificates } from "./certificates.ts";
import { claimDestinations } from "./claim-destinations.ts";
import { moveExcess } from "./move-excess.ts";
import { auditHeadRequest, depositsRequest, destinationsRequest, excessRequest, payoutsRequest } from "./protocol.ts";
import { countRecords } from "./records.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { authorizeMarkerClosing, authorizePayoutTransaction } from "./solana/authorize-transactions.ts";
import { markerClosingRequest, payoutTransactionRequest } from "./solana/transaction-protocol.ts";
import { verifyDeposits } from "./verify-deposits.ts";

/** Where the signer listens: a Unix socket that only its user can open, or TLS with client certificates. */
export type Listen = { socketPath: string } | { host: string; port: number; readCertificates: () => Certificates };

/** The oldest version of TLS that clients may use. */
const minVersion = "TLSv1.3";

/** Most of a request, bytes: 200 payouts and 1,000 deposits need less. */
const BODY_LIMIT = 3_000_000;

/** Serves the protocol of signer/protocol.ts. Returns the server and its address. */
export async function startServer(
  deps: Omit<SignerDeps, "caller">,
  listen: Listen,
): Promise<{ url: string; close(): Promise<void> }> {
  const app = createApp(listen, deps.log);
  // Amounts are strings on the wire.
  app.setReplySerializer((answer) =>
    JSON.stringify(answer, (_name, value) => (typeof value === "bigint" ? String(value) : value)),
  );
  /** Serves one path: a request that its schema refuses gets 400 with the names of the members and none of their values. */
  const serve = <T>(path: string, schema: z.ZodType<T>, answer: (body: T, deps: SignerDeps) => Promise<unknown>) =>
    app.post(path, async (request, reply) => {
      const body = schema.safeParse(request.body);
      if (!body.success) return reply.code(400).send({ error: body.error.issues.map(({ path }) => path.join(".")) });
      const end = deps.metrics.signerRequestSeconds.startTimer({ path });
      const caller = readCaller(request.socket);
      const result = await inCallersTrace(request, path, () => answer(body.data, { ...deps, caller }));
      end();
      return result ?? reply.code(503).send({ error: "the limits file is missing or invalid" });
    });
  serve("/v1/payouts", payoutsRequest, async ({ payouts }, of) => ({ results: await authorizePayouts(of, payouts) }));
  serve("/v1/deposits", depositsRequest, async ({ deposits }, of) => ({ results: await verifyDeposits(of, deposits) }));
  serve("/v1/excess", excessRequest, (request, of) => moveExcess(of, request));
  serve("/v1/destinations", destinationsRequest, async (request, of) => claimDestinations(of, request));
  serve("/v1/audit-head", auditHeadRequest, async ({ known }) => readAuditHead(deps, known));
  serve("/v1/solana/transactions", payoutTransactionRequest, (request, of) => authorizePayoutTransaction(of, request));
  serve("/v1/solana/markers", markerClosingRequest, (request, of) => authorizeMarkerClosing(of, request));
  app.get("/v1/status", async () => {
    const limits = deps.readLimits();
    return {
      limits: limits === undefined ? "invalid" : limits.paused ? "paused" : "valid",
      ...countRecords(deps.store),
    };
  });
  app.setErrorHandler((error, _request, reply) => {
    const status = error instanceof Error && "statusCode" in error ? Number(error.statusCode) : 500;
    deps.log.error({ err: error }, "request failed");
    return reply.code(status).send({ error: describeBriefly(error) });
  });
  if ("port" in listen) {
    const url = await app.listen({ host: listen.host, port: listen.port });
    return { url, close: () => app.close() };
  }
  const url = await listenOnSocket(app, listen.socketPath);
  return { url, close: () => app.close() };
}

/**
 * Runs a request as a child of the worker's span if its trace is sampled. A worker can thereby choose a trace and have it
 * recorded, and nothing else: what is signed depends on neither.
 */
function inCallersTrace<T>({ headers }: FastifyRequest, path: string, work: () => Promise<T>): Promise<T> {
  const [trace] = [headers["traceparent"]].flat();
  const attributes = { "http.request.method": "POST", "http.route": path };
  return inSharedSpan([{ trace }], () => ({ name: `POST ${path}`, kind: "server", attributes }), work);
}

/** Returns who has sent a request: the name in the client's certificate, or `socket` for a process that has opened the socket. */
function readCaller(socket: Socket): Actor {
  const name = socket instanceof TLSSocket ? socket.getPeerCertificate().subject?.CN : undefined;
  return workerActor([name].flat()[0] ?? "socket");
}

function createApp(listen: Listen, log: Log): FastifyInstance {
  const options = { bodyLimit: BODY_LIMIT, logger: false, forceCloseConnections: "idle" } as const;
  if ("socketPath" in listen) return Fastify(options);
  const read = openCertificates(listen.readCertificates, log);
  const certificates = read();
  const https = { ...certificates, requestCert: true, rejectUnauthorized: true, minVersion } as const;
  const app = Fastify({ ...options, https });
  useRenewedCertificates(app.server, { certificates, read, log });
  return app as unknown as FastifyInstance;
}

/** Reads the certificates again before each connection, and uses them when they have changed. */
function useRenewedCertificates(
  server: Server,
  { certificates, read, log }: { certificates: Certificates; read: () => Certificates; log: Log },
): void {
  let current = certificates;
  // Before the server's own listener, which begins the handshake.
  server.prependListener("connection", () => {
    const next = read();
    if (isSameCertificates(next, current)) return;
    current = next;
    try {
      server.setSecureContext({ ...next, minVersion });
      log.info("renewed certificates are used");
    } catch (err) {
      log.error({ err }, "renewed certificates cannot be used; the former ones are used");
    }
  });
}

/** Listens on a Unix socket of mode 0600. Removes the socket of a process that was killed. */
async function listenOnSocket(app: FastifyInstance, path: string): Promise<string> {
  rmSync(path, { force: true });
  // No other user can connect in the moment before the mode is set.
  const before = process.umask(0o177);
  try {
    await app.listen({ path });
    chmodSync(path, 0o600);
  } finally {
    process.umask(before);
  }
  return `unix:${path}`;
}
