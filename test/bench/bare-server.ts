import { fastify } from "fastify";

/** The reference of `--http`: a bare server of the same framework that parses the body and writes a response. */
const app = fastify();
const answer = {
  status: "requires_action",
  isFinal: false,
  pollInMs: 1000,
  info: null,
};
app.post("/", async (request) => ({ ...answer, amount: (request.body as { amount: unknown }).amount }));
app.get("/", async () => answer);
console.log(await app.listen({ host: "127.0.0.1", port: 0 }));
