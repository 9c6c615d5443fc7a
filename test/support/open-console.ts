import { Registry } from "prom-client";
import { openDb } from "../../db/open.ts";
import { buildBoard } from "../../ops/bull-board/board.ts";
import { recordRetry } from "../../payments/operators/sign-in.ts";
import { computeTotp, totpStep } from "../../payments/operators/totp.ts";
import { describeJob } from "../../queues/describe-job.ts";
import { createLog } from "../../runtime/log.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import { addCleanup } from "./cleanups.ts";
import { createOperators } from "./create-operators.ts";
import { roleUrl } from "./database-roles.ts";
import type { MerchantFixture } from "./merchant-fixture.ts";
import { testEncryption } from "./test-deps.ts";

/** Text as a stranger would write it who attacks the page that shows it. */
export const hostileText = `"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;\u202egpj.exe javascript:alert(1)`;

type Fixture = Pick<MerchantFixture, "db" | "databaseUrl"> & { deps: Pick<MerchantFixture["deps"], "now"> };
type Queues = Parameters<typeof buildBoard>[0]["queues"];

/**
 * Opens bull-board with the console on a fixture's database, with the database role that it has in production, and creates
 * its operators. Each logs in when a test first acts as them.
 */
export async function openConsole(fixture: Fixture, { queues = [] }: { queues?: Queues } = {}) {
  const { now } = fixture.deps;
  const encryption = testEncryption();
  const people = await createOperators({ db: fixture.db, now, ...encryption });
  const url = await roleUrl(fixture.databaseUrl, "board");
  const db = openDb(url, { max: 4, statementTimeoutMs: 5_000 });
  addCleanup(() => db.destroy());
  const open = async (over: Partial<Parameters<typeof buildBoard>[0]> = {}) => {
    const opened = await buildBoard({
      db,
      now,
      decryptTotpSecret: encryption.decryptTotpSecret,
      queues,
      describeJob,
      deployment: "test",
      trustedProxies: [],
      recordRetry: (token, retried) => recordRetry({ db }, token, retried),
      log: createLog({ level: "silent", role: "bull-board" }),
      metrics: createMetrics(new Registry(), "bull-board"),
      ...over,
    });
    addCleanup(() => opened.close());
    return opened;
  };
  const board = await open();

  type Name = keyof typeof people;
  const cookies = new Map<Name, Promise<string>>();
  const logIn = async (name: Name): Promise<string> => {
    const { password, secret } = people[name];
    const code = computeTotp(secret, totpStep(now()));
    const answer = await board.inject({
      method: "POST",
      url: "/login",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      payload: new URLSearchParams({ name, password, code }).toString(),
    });
    if (answer.statusCode !== 303) throw new Error(`${name} cannot log in: ${answer.statusCode}`);
    return String(answer.headers["set-cookie"]).split(";")[0] ?? "";
  };
  /** Returns the cookie of an operator's session. */
  const cookieOf = (name: Name): Promise<string> => {
    const cookie = cookies.get(name) ?? logIn(name);
    cookies.set(name, cookie);
    return cookie;
  };
  return {
    board,
    /** Opens another board for the same operators. @param over what differs */
    open,
    db,
    people,
    cookieOf,
    /** Requests a page. */
    get: async (path: string, as: Name = "olga") =>
      board.inject({ url: path, headers: { cookie: await cookieOf(as), accept: "text/html" } }),
    /** Sends a form. With an `origin` it is sent as by a browser that has no Sec-Fetch-Site. */
    post: async (path: string, form: Record<string, string>, as: Name = "olga", headers: Record<string, string> = {}) =>
      board.inject({
        method: "POST",
        url: path,
        headers: {
          cookie: await cookieOf(as),
          "content-type": "application/x-www-form-urlencoded",
          ...("origin" in headers ? {} : { "sec-fetch-site": "same-origin" }),
          ...headers,
        },
        payload: new URLSearchParams(form).toString(),
      }),
  };
}
