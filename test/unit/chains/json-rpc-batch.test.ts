import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeEach, expect, test } from "vitest";
import { createCall } from "../../../chains/json-rpc.ts";
import { createCallMany } from "../../../chains/json-rpc-batch.ts";
import { listen } from "../../support/listen.ts";

type Frame = { id: number; method: string; params: number[] };
type Answer = { status?: number; headers?: Record<string, string>; body: unknown };

/** How the endpoint answers a batch, and a single call. */
let answerBatch: (frames: Frame[]) => Answer;
let answerOne: (frame: Frame) => Answer;
/** The bodies that the endpoint has received. */
let bodies: (Frame | Frame[])[] = [];

const server = createServer(async (request, response) => {
  const body = JSON.parse(await text(request)) as Frame | Frame[];
  bodies.push(body);
  const { status = 200, headers, body: answer } = Array.isArray(body) ? answerBatch(body) : answerOne(body);
  response.writeHead(status, headers).end(typeof answer === "string" ? answer : JSON.stringify(answer));
});
const url = await listen(server);
afterAll(() => server.close());

const double = ({ id, params: [number = 0] }: Frame) => ({ jsonrpc: "2.0", id, result: 2 * number });
const openEndpoint = () => createCallMany(createCall(url, 5_000));
const numbers = [[1], [2], [3]];
const doubled = [{ result: 2 }, { result: 4 }, { result: 6 }];

beforeEach(() => {
  bodies = [];
  answerBatch = (frames) => ({ body: frames.map(double) });
  answerOne = (frame) => ({ body: double(frame) });
});

test("several calls are one request, and their results are in the order of the calls, whatever that of the answers is", async () => {
  answerBatch = (frames) => ({ body: frames.map(double).reverse() });
  expect(await openEndpoint()("double", numbers)).toEqual(doubled);
  expect(bodies).toHaveLength(1);
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
])(
  "an endpoint that refuses batches by %s gets single calls, at once and for the next minutes",
  async (_how, refusal) => {
    answerBatch = () => refusal;
    const callMany = openEndpoint();
    expect(await callMany("double", numbers)).toEqual(doubled);
    expect(await callMany("double", numbers)).toEqual(doubled);
    expect(bodies.map((body) => Array.isArray(body))).toEqual([true, ...Array(6).fill(false)]);
  },
);

test("a rate limit and an outage are thrown, and are no refusal of batches", async () => {
  const callMany = openEndpoint();
  answerBatch = () => ({ status: 429, headers: { "retry-after": "7" }, body: "" });
  await expect(callMany("double", numbers)).rejects.toMatchObject({ code: "rpc_unreachable", waitMs: 7_000 });
  answerBatch = () => ({ status: 503, body: "" });
  answerOne = () => ({ status: 503, body: "" });
  await expect(callMany("double", numbers)).rejects.toMatchObject({ code: "rpc_unreachable" });
  answerBatch = (frames) => ({ body: frames.map(double) });
  bodies = [];
  expect(await callMany("double", numbers)).toEqual(doubled);
  expect(bodies).toHaveLength(1);
});
