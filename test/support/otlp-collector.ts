import { createServer, type IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { listen } from "./listen.ts";

const Value = z.looseObject({
  stringValue: z.string().optional(),
  intValue: z.union([z.number(), z.string()]).optional(),
  boolValue: z.boolean().optional(),
});
const Attributes = z
  .array(z.object({ key: z.string(), value: Value }))
  .default([])
  .transform(
    (list): Record<string, unknown> =>
      Object.fromEntries(list.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? value.boolValue])),
  );
const Span = z.object({
  traceId: z.string().length(32),
  spanId: z.string().length(16),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  attributes: Attributes,
  links: z.array(z.object({ traceId: z.string(), spanId: z.string() })).default([]),
  status: z.looseObject({ code: z.number().optional() }).optional(),
});
const ExportRequest = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: Attributes }),
      scopeSpans: z.array(z.object({ spans: z.array(Span) })),
    }),
  ),
});

/** A span as the collector received it, with the name of the service that sent it. */
export type CollectedSpan = z.infer<typeof Span> & { service: unknown };

/** Starts a collector that takes OTLP over HTTP with JSON, as the service sends it. A request of another form gets 400. */
export async function startCollector() {
  const spans: CollectedSpan[] = [];
  const bodies: string[] = [];
  const requests: { url: string; headers: IncomingHttpHeaders }[] = [];
  const state: { status: number; hangs: boolean } = { status: 200, hangs: false };
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    requests.push({ url: request.url ?? "", headers: request.headers });
    if (state.hangs) return;
    if (state.status !== 200) return void response.writeHead(state.status).end();
    const parsed = ExportRequest.safeParse(JSON.parse(body));
    if (!parsed.success) return void response.writeHead(400).end();
    bodies.push(body);
    for (const { resource, scopeSpans } of parsed.data.resourceSpans)
      for (const span of scopeSpans.flatMap((scope) => scope.spans))
        spans.push({ ...span, service: resource.attributes["service.name"] });
    response.setHeader("content-type", "application/json").end("{}");
  });
  const url = await listen(server);
  return {
    url,
    spans,
    bodies,
    requests,
    /** Takes no more spans: answers with a status, or not at all. The status 200 makes it take them again. */
    refuse: (how: number | "hang") =>
      Object.assign(state, how === "hang" ? { hangs: true } : { hangs: false, status: how }),
    ofTrace: (traceId: string) => spans.filter((span) => span.traceId === traceId),
  };
}
