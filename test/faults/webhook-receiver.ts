import { createServer, type ServerResponse } from "node:http";
import { openDb } from "../../db/open.ts";
import { freePort } from "../../local/free-ports.ts";
import { createEndpoint } from "../../payments/webhooks/change-endpoints.ts";
import { addCleanup } from "../support/cleanups.ts";
import { testActor } from "../support/test-actor.ts";
import { testEncryption } from "../support/test-deps.ts";
import type { Random } from "./seeded-random.ts";

/** A body that a text column cannot store, and far too long. */
const hostileBody = Buffer.concat([
  Buffer.from('{"error":"\u0000\\u0000\\ud800 \u001b[2J\r\n'),
  Buffer.from([0xff, 0xfe, 0x00, 0xed, 0xa0, 0x80]),
  Buffer.alloc(100_000, "x"),
]);

/** Starts a merchant's webhook server that returns failures and hostile responses. */
export async function startWebhookReceiver(args: {
  databaseUrl: string;
  /** `id:base64` of 32 bytes. */
  random: Random;
}): Promise<void> {
  const { databaseUrl, random } = args;
  const answer = (response: ServerResponse) => {
    const drawn = random.between(1, 10);
    if (drawn <= 6) return response.writeHead(204).end();
    if (drawn <= 8) return response.writeHead(500, { "content-type": "text/html" }).end(hostileBody);
    if (drawn === 9)
      return response.socket?.end("HTTP/1.1 500 \u0000\r\nretry-after: \u0000\u00ff-1\r\nx: \u0007\r\n\r\n");
    return response.socket?.resetAndDestroy();
  };
  const server = createServer((request, response) => {
    request.resume().once("end", () => answer(response));
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  addCleanup(() => {
    server.closeAllConnections();
    server.close();
  });

  const db = openDb(databaseUrl, { max: 1, applicationName: "faults" });
  try {
    const { id: accountId } = await db.selectFrom("account").select("id").executeTakeFirstOrThrow();
    const deps = { db, now: () => new Date(), ...testEncryption(), validateUrl: () => undefined };
    const url = `http://127.0.0.1:${port}/`;
    await createEndpoint(deps, { actor: testActor, accountId, mode: "live", url });
  } finally {
    await db.destroy();
  }
}
