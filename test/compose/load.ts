import { setTimeout as pause } from "node:timers/promises";
import type { PrivateKeyAccount } from "viem";
import { ask, confirm, getStatus, listOptions, Refused, type Shop, signOption } from "../../local/buyer-client.ts";

/** What the clients saw. `unrepeatable` requests may have been served, and nothing lets a client repeat them safely. */
type Counts = Record<
  "succeeded" | "answered" | "repeated" | "connectionErrors" | "5xx" | "failed" | "withoutKey" | "unrepeatable",
  number
>;

/** How long a client repeats a request, and how long it waits where the response names no time, milliseconds. */
const REPEAT_WITHIN_MS = 60_000;
const REPEAT_AFTER_MS = 500;
/** How long a payment may take, milliseconds. */
const PAID_WITHIN_MS = 180_000;
const CREATE_EVERY_MS = 50;

/**
 * Pays until it is stopped, as correct HTTP clients do: each buyer creates a payment with a key, pays it and polls until it is
 * final. A request that may be repeated is repeated after a connection error, a 5xx or a 429. Beside them a client creates
 * payments without a key, and repeats only what reached no server.
 */
export function startLoad(shop: Shop, chain: string, buyers: readonly PrivateKeyAccount[]) {
  const counts: Counts = {
    succeeded: 0,
    answered: 0,
    repeated: 0,
    connectionErrors: 0,
    "5xx": 0,
    failed: 0,
    withoutKey: 0,
    unrepeatable: 0,
  };
  const created: string[] = [];
  const failures: string[] = [];
  const stopped = new AbortController();
  const run = Date.now().toString(36);
  let orders = 0;

  const send = async <T>(work: () => Promise<T>, isRepeatable = true): Promise<T> => {
    const until = Date.now() + REPEAT_WITHIN_MS;
    for (;;) {
      try {
        const answer = await work();
        counts.answered += 1;
        return answer;
      } catch (error) {
        const refused = error instanceof Refused ? error : undefined;
        if (refused === undefined) counts.connectionErrors += 1;
        else if (refused.status >= 500) counts["5xx"] += 1;
        const isUnserved = refused?.status === 429 || (error as { code?: unknown }).code === "ECONNREFUSED";
        const isOver = Date.now() > until || (refused !== undefined && refused.status < 500 && refused.status !== 429);
        if (isOver || !(isRepeatable || isUnserved)) {
          counts[isOver ? "failed" : "unrepeatable"] += 1;
          throw error;
        }
        counts.repeated += 1;
        await pause(refused?.retryAfterSeconds === undefined ? REPEAT_AFTER_MS : refused.retryAfterSeconds * 1_000);
      }
    }
  };
  const create = async (headers: Record<string, string>): Promise<string> => {
    orders += 1;
    const body = { referenceId: `${run}-${orders}`, amount: { unit: "iso4217/USD", value: "1" } };
    const hasKey = "idempotency-key" in headers;
    const { id } = (await send(() => ask(shop, "POST", "/v1/payments", body, headers), hasKey)) as { id: string };
    return id;
  };
  const buy = async (buyer: PrivateKeyAccount): Promise<void> => {
    const id = await create({ "idempotency-key": `${run}-key-${orders}` });
    created.push(id);
    const [option] = await send(() => listOptions(shop, id, [`${chain}:${buyer.address}`]));
    if (option === undefined) throw new Error(`${id} has no option`);
    const results = await send(() => signOption(shop, id, option, buyer));
    let status = await send(() => confirm(shop, id, { optionId: option.id, results }));
    for (const until = Date.now() + PAID_WITHIN_MS; !status.isFinal && Date.now() < until; )
      status = await send(() => getStatus(shop, id, 10_000));
    if (status.status !== "succeeded") throw new Error(`${id} is ${status.status}`);
    counts.succeeded += 1;
  };
  const loop = async (work: () => Promise<void>, note: (error: unknown) => void) => {
    while (!stopped.signal.aborted) await work().catch(note);
  };
  const createWithoutKey = async () => {
    await pause(CREATE_EVERY_MS);
    counts.withoutKey += 1;
    await create({});
  };
  const note = (error: unknown) => failures.push(`${new Date().toISOString()} ${error}`.slice(0, 300));
  const all = Promise.all([...buyers.map((buyer) => loop(() => buy(buyer), note)), loop(createWithoutKey, () => {})]);
  return {
    counts,
    /** The payments whose creation with a key was answered. */
    created,
    /** One sentence for each payment that did not succeed. */
    failures,
    /** Lets every buyer finish the payment that they have begun. */
    async stop(): Promise<void> {
      stopped.abort();
      await all;
    },
  };
}
