import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";

/**
 * Makes the server's shutdown end connections that have not sent a request yet. Browsers and load balancers open such
 * connections in advance; Node counts them as busy and would wait a minute for their headers.
 */
export function closeUnusedConnections(app: FastifyInstance): void {
  const unused = new Set<Socket>();
  app.server.on("connection", (socket: Socket) => {
    unused.add(socket);
    socket.on("close", () => unused.delete(socket));
  });
  app.server.on("request", (request: IncomingMessage) => unused.delete(request.socket));
  app.addHook("preClose", async () => {
    for (const socket of unused) socket.destroy();
  });
}
