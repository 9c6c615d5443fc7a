import type { FastifyInstance } from "fastify";
import { isTracing, startRequestSpan } from "../../runtime/tracing/spans.ts";
import { paymentOf } from "./observe-requests.ts";

/** Requests that load balancers repeat all day. */
const probes: ReadonlySet<string> = new Set(["/livez", "/readyz"]);

/**
 * Starts the trace of every request except probes, and runs the request in it. A span holds the method and the route, and
 * neither the path, which can name a payment, nor headers.
 */
export function traceRequests(app: FastifyInstance): void {
  if (!isTracing()) return;
  app.addHook("onRequest", (request, reply, done) => {
    const route = request.routeOptions.url;
    if (route !== undefined && probes.has(route)) return done();
    const { method } = request;
    const attributes = { "http.request.method": method, ...(route === undefined ? {} : { "http.route": route }) };
    const span = startRequestSpan(
      {
        name: route === undefined ? method : `${method} ${route}`,
        kind: "server",
        attributes: { ...attributes, "pay.request_id": request.id },
      },
      { traceparent: request.headers["traceparent"] },
    );
    if (!span) return done();
    reply.raw.on("close", () => {
      const answered = reply.raw.writableFinished;
      const status = reply.raw.statusCode;
      const outcome = answered ? { "http.response.status_code": status } : { "error.type": "client_gone" };
      const payment = paymentOf(request);
      span.end({
        ...outcome,
        ...(payment === undefined ? {} : { "pay.payment.id": payment }),
        isError: answered && status >= 500,
      });
    });
    span.run(done);
  });
}
