import { Pool } from "undici";
import type { z } from "zod";
import type { Log } from "../runtime/log.ts";
import { describeBriefly } from "../runtime/redaction.ts";
import {
  depositsResponse,
  destinationsResponse,
  excessResponse,
  type PayoutRequest,
  type PayoutResult,
  payoutsResponse,
} from "./protocol.ts";
import { refuse } from "./refuse.ts";
import { markerClosingResponse, payoutTransactionResponse } from "./solana/transaction-protocol.ts";
import type { TreasurySigner } from "./treasury-signer.ts";

/** Where the signer listens: a Unix socket, or a URL with the certificates of both sides. */
type SignerAddress = { socketPath: string } | { url: string; ca: Buffer; cert: Buffer; key: Buffer };

/** How long the signer may take to connect, and to answer, milliseconds. A KMS signs 200 payouts in some seconds. */
const CONNECT_MS = 2_000;
const ANSWER_MS = 30_000;

/** The signer has answered that it cannot read a request. */
class UnreadableRequest extends Error {
  override readonly name = "UnreadableRequest";
}

/** Creates a client of the signer's process. It connects when it is used first, and again after the signer was down. */
export function createSignerClient(address: SignerAddress, { log }: { log: Pick<Log, "warn"> }): TreasurySigner {
  const pool = openPool(address);

  /** Returns the answer to a request; undefined while the signer does not answer. Throws for an answer that is not valid. */
  async function post<T>(path: string, body: unknown, schema: z.ZodType<T>): Promise<T | undefined> {
    try {
      const answer = await pool.request({
        path,
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body, (_name, value) => (typeof value === "bigint" ? String(value) : value)),
      });
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

  /** Signs payouts. A payout that the signer cannot read is refused alone, and the others are asked for without it. */
  async function signPayouts(payouts: readonly PayoutRequest[]): Promise<PayoutResult[]> {
    try {
      const answer = await post("/v1/payouts", { payouts }, payoutsResponse);
      if (answer && answer.results.length !== payouts.length)
        throw new Error("the signer left a payout without a result");
      return answer?.results ?? payouts.map(() => refuse("signer_unavailable"));
    } catch (error) {
      if (!(error instanceof UnreadableRequest)) throw error;
      log.warn({ error: error.message, payouts: payouts.length }, "signer cannot read payouts");
      if (payouts.length === 1) return [refuse("invalid_request")];
      const results: PayoutResult[] = [];
      for (const payout of payouts) results.push(...(await signPayouts([payout])));
      return results;
    }
  }

  return {
    signPayouts,
    async claimDeposits(deposits) {
      const answer = await post("/v1/deposits", { deposits }, depositsResponse);
      return answer?.results ?? deposits.map(() => refuse("signer_unavailable"));
    },
    claimDestinations: (request) => post("/v1/destinations", request, destinationsResponse),
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

function openPool(address: SignerAddress): Pool {
  const common = { connections: 4, headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS };
  if ("socketPath" in address)
    return new Pool("http://signer", { ...common, connect: { socketPath: address.socketPath, timeout: CONNECT_MS } });
  const { url, ca, cert, key } = address;
  return new Pool(url, { ...common, connect: { ca, cert, key, timeout: CONNECT_MS } });
}

/** Returns true for an error of the connection: the request may be repeated. */
function isOutage(error: unknown): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}
