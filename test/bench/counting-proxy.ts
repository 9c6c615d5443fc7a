import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** What has gone through a proxy: calls by method, and bytes of the answers. */
export type Passed = { calls: Record<string, number>; bytes: number };

/**
 * Starts a JSON-RPC proxy for single calls that forwards everything, after `delayMs` milliseconds, and counts it.
 */
export async function startCountingProxy(
  target: string,
  { delayMs = 0 }: { delayMs?: number } = {},
): Promise<{ url: string; read(): Passed }> {
  const passed: Passed = { calls: {}, bytes: 0 };
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts);
    const { method } = JSON.parse(body.toString("utf8")) as { method: string };
    const headers = { "content-type": "application/json" };
    if (delayMs > 0) await pause(delayMs);
    const answer = await fetch(target, { method: "POST", headers, body })
      .then(async (one) => Buffer.from(await one.arrayBuffer()))
      .catch(() => undefined);
    if (!answer) return void request.socket.destroy();
    passed.calls[method] = (passed.calls[method] ?? 0) + 1;
    passed.bytes += answer.length;
    response.writeHead(200, headers).end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, read: () => structuredClone(passed) };
}
