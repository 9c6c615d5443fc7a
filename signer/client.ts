import { buildConnector, Pool } from "undici";
import type { z } from "zod";
import type { Log } from "../runtime/log.ts";
import { describeBriefly } from "../runtime/redaction.ts";
import { currentTrace, inSpan, type SpanDescription } from "../runtime/tracing/spans.ts";
import { type Certificates, openCertificates } from "./certificates.ts";
import {
  auditHeadResponse,
  type DepositResult,
  type DestinationsRequest,
  type DestinationsResponse,
  depositsResponse,
  destinationsResponse,
  excessResponse,
  type PayoutResult,
  payoutsResponse,
  type Refused,
} from "./protocol.ts";
import { refuse } from "./refuse.ts";
import { markerClosingResponse, payoutTransactionResponse } from "./solana/transaction-protocol.ts";
import type { TreasurySigner } from "./treasury-signer.ts";

/** Where the signer listens: a Unix socket, or a URL with the certificates of both sides. */
type SignerAddress = { socketPath: string } | { url: string; readCertificates: () => Certificates };

/** How long the signer may take to connect, and to answer, milliseconds. A KMS signs 200 payouts in some seconds. */
const CONNECT_MS = 2_000;
const ANSWER_MS = 30_000;

/** The signer has answered that it cannot read a request. */
class UnreadableRequest extends Error {
  override readonly name = "UnreadableRequest";
}

/** Creates a client of the signer's process. It connects when it is used first, and again after the signer was down. */
export function createSignerClient(address: SignerAddress, { log }: { log: Pick<Log, "warn"> }): TreasurySigner {
  const pool = openPool(address, log);

  /** Returns the answer to a request; undefined while the signer does not answer. Throws for an answer that is not valid. */
  async function post<T>(path: string, body: unknown, schema: z.ZodType<T>): Promise<T | undefined> {
    try {
      const ask = () =>
        pool.request({
          path,
          method: "POST",
          headers: { "content-type": "application/json", ...continueTrace() },
          body: JSON.stringify(body, (_name, value) => (typeof value === "bigint" ? String(value) : value)),
        });
      const answer = await inSpan(() => describeRequest(path), ask);
      const text = await answer.body.text();
      if (answer.statusCode === 200) return schema.parse(JSON.parse(text));
      if (answer.statusCode < 500)
        throw new UnreadableRequest(`the signer refuses the request with the status ${answer.statusCode}`);
      log.warn({ status: answer.statusCode }, "signer does not answer");
    } catch (error) {
      if (!isOutage(error)) throw error;
      log.warn({ error: describeBriefly(error) }, "signer does not answer");
    }
    return undefined;
  }

  /**
   * Asks for items. When the signer cannot read the request, asks for each half of it, so that an item that it cannot read
   * is refused alone. Returns one result for each item, in their order.
   */
  async function askInHalves<Item, Result>(
    items: readonly Item[],
    ask: (items: readonly Item[]) => Promise<Result[]>,
  ): Promise<(Result | Refused)[]> {
    try {
      const results = await ask(items);
      if (results.length !== items.length) throw new Error("the signer left an item without a result");
      return results;
    } catch (error) {
      if (!(error instanceof UnreadableRequest)) throw error;
      log.warn({ error: error.message, items: items.length }, "signer cannot read a request");
      if (items.length <= 1) return items.map(() => refuse("invalid_request"));
      const middle = Math.ceil(items.length / 2);
      const first = await askInHalves(items.slice(0, middle), ask);
      return [...first, ...(await askInHalves(items.slice(middle), ask))];
    }
  }

  /** Reports in one request, or in one for each item when the signer cannot read it as a whole. */
  async function claimDestinations(request: DestinationsRequest): Promise<DestinationsResponse | undefined> {
    try {
      return await post("/v1/destinations", request, destinationsResponse);
    } catch (error) {
      if (!(error instanceof UnreadableRequest)) throw error;
      const parts = splitReport(request);
      log.warn({ error: error.message, items: parts.length }, "signer cannot read a report");
      if (parts.length <= 1) return refuseReport(request);
      const whole: DestinationsResponse = { destinations: [], statements: [] };
      for (const part of parts) {
        const answer = await claimDestinations(part);
        if (!answer) return undefined;
        whole.destinations.push(...answer.destinations);
        whole.statements.push(...answer.statements);
      }
      return whole;
    }
  }

  return {
    signPayouts: (all) =>
      askInHalves(all, async (payouts): Promise<PayoutResult[]> => {
        const answer = await post("/v1/payouts", { payouts }, payoutsResponse);
        return answer?.results ?? payouts.map(() => refuse("signer_unavailable"));
      }),
    claimDeposits: (all) =>
      askInHalves(all, async (deposits): Promise<DepositResult[]> => {
        const answer = await post("/v1/deposits", { deposits }, depositsResponse);
        return answer?.results ?? deposits.map(() => refuse("signer_unavailable"));
      }),
    claimDestinations,
    readAuditHead: (request) => post("/v1/audit-head", request, auditHeadResponse),
    async moveExcess(request) {
      return (await post("/v1/excess", request, excessResponse)) ?? refuse("signer_unavailable");
    },
    async signPayoutTransaction(request) {
      return (
        (await post("/v1/solana/transactions", request, payoutTransactionResponse)) ?? refuse("signer_unavailable")
      );
    },
    async signMarkerClosing(request) {
      return (await post("/v1/solana/markers", request, markerClosingResponse)) ?? refuse("signer_unavailable");
    },
    close: () => void pool.destroy(),
  };
}

/** Returns the header by which the signer's span becomes a child of the running one; none outside of sampled traces. */
function continueTrace(): { traceparent?: string } {
  const traceparent = currentTrace();
  return traceparent === undefined ? {} : { traceparent };
}

/** Returns the span of a request. */
function describeRequest(path: string): SpanDescription {
  return { name: `POST ${path}`, kind: "client", attributes: { "http.request.method": "POST", "url.path": path } };
}

/**
 * Splits a report into reports of one item, in the order in which the signer reads them. The destinations of a merchant and asset stay
 * together, because each ends the claims of those that its report lacks. Pure.
 */
function splitReport(report: DestinationsRequest): DestinationsRequest[] {
  const { approvalKeys, revokedKeys, destinations, statements } = report;
  const nothing: DestinationsRequest = { approvalKeys: [], revokedKeys: [], destinations: [], statements: [] };
  return [
    ...approvalKeys.map((key) => ({ ...nothing, approvalKeys: [key] })),
    ...revokedKeys.map((key) => ({ ...nothing, revokedKeys: [key] })),
    ...Map.groupBy(destinations, ({ merchantId, asset }) => `${merchantId} ${asset}`)
      .values()
      .map((accounts) => ({ ...nothing, destinations: accounts })),
    ...statements.map((one) => ({ ...nothing, statements: [one] })),
  ];
}

/** Returns the answer to a report that the signer cannot read. */
function refuseReport({ destinations, statements }: DestinationsRequest): DestinationsResponse {
  return {
    destinations: destinations.map(() => ({ state: "rejected", appliesAt: null })),
    statements: statements.map(() => ({ ok: false, detail: "unreadable" })),
  };
}

function openPool(address: SignerAddress, log: Pick<Log, "warn">): Pool {
  const common = { connections: 4, headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS };
  if ("socketPath" in address)
    return new Pool("http://signer", { ...common, connect: { socketPath: address.socketPath, timeout: CONNECT_MS } });
  const read = openCertificates(address.readCertificates, log);
  const connect: buildConnector.connector = (options, callback) => {
    try {
      buildConnector({ ...read(), timeout: CONNECT_MS })(options, callback);
    } catch (error) {
      // A key that does not belong to its certificate, for example while both are being replaced.
      callback(error instanceof Error ? error : new Error(String(error)), null);
    }
  };
  return new Pool(address.url, { ...common, connect });
}

/** Returns true for an error of the connection: the request may be repeated. */
function isOutage(error: unknown): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}
