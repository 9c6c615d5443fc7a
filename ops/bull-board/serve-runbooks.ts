import type { FastifyInstance } from "fastify";
import { runbooks } from "./runbooks.ts";

/** Serves ops/runbooks as plain text, so that the board can link to the runbook of an alert. */
export function serveRunbooks(app: FastifyInstance): void {
  const pages = new Map(Object.entries(runbooks));
  const items = [...pages.keys()].map((name) => `<li><a href="/runbooks/${name}">${name}</a></li>`).join("\n");
  app.get("/runbooks", (_request, reply) =>
    reply.type("text/html; charset=utf-8").send(`<!doctype html><title>Runbooks</title><ul>\n${items}\n</ul>\n`),
  );
  app.get<{ Params: { page: string } }>("/runbooks/:page", (request, reply) => {
    const text = pages.get(request.params.page);
    if (text === undefined) return reply.code(404).send("no such runbook\n");
    return reply.type("text/plain; charset=utf-8").send(text);
  });
}
