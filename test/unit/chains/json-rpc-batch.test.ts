import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeEach, expect, test } from "vitest";
import { createCall } from "../../../chains/json-rpc.ts";
import { BatchRefused, createCallMany } from "../../../chains/json-rpc-batch.ts";
import { listen } from "../../support/listen.ts";

type Frame = { id: number; method: string; params: number[] };
type Answer = { status?: number; headers?: Record<string, string>; body: unknown };

/** How the endpoint answers a batch. */
let answerBatch: (frames: Frame[]) => Answer;
/** The number of requests that the endpoint has received. */
let requests = 0;

const server = createServer(async (request, response) => {
  requests += 1;
  const { status = 200, headers, body } = answerBatch(JSON.parse(await text(request)) as Frame[]);
  response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
});
const url = await listen(server);
afterAll(() => server.close());

const double = ({ id, params: [number = 0] }: Frame) => ({ jsonrpc: "2.0", id, result: 2 * number });
const openEndpoint = () => createCallMany(createCall(url, 5_000).send);
const numbers = [[1], [2], [3]];
const doubled = [{ result: 2 }, { result: 4 }, { result: 6 }];

beforeEach(() => {
  requests = 0;
  answerBatch = (frames) => ({ body: frames.map(double) });
});

test("several calls are one request, and their results are in the order of the calls, whatever that of the answers is", async () => {
  answerBatch = (frames) => ({ body: frames.map(double).reverse() });
  expect(await openEndpoint()("double", numbers)).toEqual(doubled);
  expect(requests).toBe(1);
});

test("a call of a batch that fails leaves the others their results", async () => {
  const error = { code: -32_005, message: "Node is behind" };
  answerBatch = ([first, ...others]) => ({ body: [{ id: first?.id, error }, ...others.map(double)] });
  expect(await openEndpoint()("double", numbers)).toEqual([
    { error: expect.objectContaining({ code: "rpc_answer", message: expect.stringContaining("-32005") }) },
    ...doubled.slice(1),
  ]);
});

test.each<[string, Answer]>([
  ["an error in place of the answers", { body: { id: null, error: { code: -32_600, message: "no batches" } } }],
  ["an error for each call", { body: [0, 1, 2].map((id) => ({ id, error: { code: -32_005, message: "too many" } })) }],
  ["a status", { status: 413, body: "too large" }],
  ["a page", { body: "<html>" }],
  ["fewer answers", { body: [{ id: 0, result: 2 }] }],
  ["answers to other calls", { body: [7, 8, 9].map((id) => ({ id, result: 2 })) }],
])("an endpoint refuses a batch by %s", async (_how, refusal) => {
  answerBatch = () => refusal;
  await expect(openEndpoint()("double", numbers)).rejects.toMatchObject({
    code: "rpc_answer",
    cause: expect.any(BatchRefused),
  });
});

test.each([401, 403, 408, 500, 502, 503])(
  "the status %i leads to the next endpoint, as for a single call",
  async (status) => {
    answerBatch = () => ({ status, body: "" });
    await expect(openEndpoint()("double", numbers)).rejects.toMatchObject({
      code: "rpc_unreachable",
      waitMs: undefined,
    });
  },
);

test("a rate limit says how long to wait", async () => {
  answerBatch = () => ({ status: 429, headers: { "retry-after": "7" }, body: "" });
  await expect(openEndpoint()("double", numbers)).rejects.toMatchObject({ code: "rpc_unreachable", waitMs: 7_000 });
});
