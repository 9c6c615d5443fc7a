import { Agent, type IncomingMessage, request } from "node:http";

export type HttpResponse = { status: number; text: string };
export type SendRequest = (method: "GET" | "POST", path: string, body?: string) => Promise<HttpResponse>;

/** Creates a client of one server with keep-alive connections. It needs far less CPU than fetch, which the bench would measure. */
export function createClient(baseUrl: string, headers: Record<string, string>, connections: number): SendRequest {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const { hostname, port } = new URL(baseUrl);
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      const sent = body === undefined ? headers : { ...headers, "content-type": "application/json" };
      const asking = request({ agent, hostname, port, method, path, headers: sent }, (response) =>
        readText(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject),
      );
      asking.on("error", reject);
      asking.end(body);
    });
}

async function readText(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  const bytes = Buffer.concat(parts);
  // Compressed bytes are no text. To decode them as UTF-8 takes longer than the server needs to make them.
  return bytes.toString(response.headers["content-encoding"] === undefined ? "utf8" : "latin1");
}
