import { setTimeout as pause } from "node:timers/promises";
import { fetch } from "undici";
import type { PrivateKeyAccount } from "viem";
import { ask, getStatus, pay, Refused, type Shop, waitFinal } from "../../local/buyer-client.ts";
import { waitFor } from "./wait-for.ts";

export type Load = {
  /** Resolves when this many more payments have succeeded. Rejects when a request has failed. */
  more(payments: number): Promise<void>;
  /** Lets every buyer finish the payment that they have begun, and resolves when all have. */
  stop(): Promise<void>;
  /**
   * The numbers of payments that succeeded, and beside them of status requests, of checkout pages with their script (and of those
   * that were loaded again for it), and of payments that were created without an idempotency key.
   */
  readonly counts: Readonly<Record<"paid" | "polls" | "pages" | "reloads" | "withoutKey", number>>;
  /** One sentence for every request that failed. No request is repeated. */
  readonly failures: readonly string[];
};

/** How long a payment may take, milliseconds. */
const PAID_WITHIN_MS = 180_000;
const POLL_EVERY_MS = 20;
const VISIT_EVERY_MS = 50;
const CREATE_EVERY_MS = 100;

/**
 * Pays without a pause: each buyer creates a payment, pays it and long-polls until it has succeeded. Meanwhile others poll, and
 * create payments that nothing pays. No request is repeated, so a failure is one that the service has caused.
 */
export function startUpgradeLoad(shop: Shop, chain: string, buyers: readonly PrivateKeyAccount[]): Load {
  const counts = { paid: 0, polls: 0, pages: 0, reloads: 0, withoutKey: 0 };
  const failures: string[] = [];
  const stopped = new AbortController();
  let newest: string | undefined;
  let orders = 0;
  const note = (what: string) => (error: unknown) => {
    const cause = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    failures.push(`${what}: ${error instanceof Refused ? error.message : error}${cause}`.slice(0, 300));
  };
  const create = async (key?: string): Promise<string> => {
    orders += 1;
    const body = { referenceId: `order-${orders}`, amount: { unit: "iso4217/USD", value: "1" } };
    const headers: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
    return ((await ask(shop, "POST", "/v1/payments", body, headers)) as { id: string }).id;
  };
  const buy = async (buyer: PrivateKeyAccount): Promise<void> => {
    const id = await create(`key-${orders}-${buyer.address}`);
    newest = id;
    await pay(shop, id, buyer, chain);
    const { status } = await waitFinal(shop, id, PAID_WITHIN_MS);
    if (status !== "succeeded") throw new Error(`the payment ${id} is ${status}`);
    counts.paid += 1;
  };
  const repeat = async (what: string, everyMs: number, work: () => Promise<unknown>): Promise<void> => {
    while (!stopped.signal.aborted) {
      await work().catch(note(what));
      if (everyMs > 0) await pause(everyMs);
    }
  };
  const poll = async () => {
    if (newest !== undefined) await getStatus(shop, newest);
    counts.polls += 1;
  };
  // As a browser: the page, then the script that it names. When the last api of the page's release has left in between, no api
  // has the script, and the buyer loads the page again.
  const visit = async (isReload = false): Promise<void> => {
    if (newest === undefined) return;
    const page = await fetch(`${shop.baseUrl}/?pid=${newest}`);
    const script = /src="([^"]*\/assets\/[^"]+)"/.exec(await page.text())?.[1] ?? "/no script";
    const { status } = await fetch(new URL(new URL(script, page.url).pathname, page.url));
    if (status === 404 && !isReload) {
      counts.reloads += 1;
      return visit(true);
    }
    if (status !== 200) throw new Error(`${script} answered ${status}`);
    counts.pages += 1;
  };
  const createWithoutKey = async () => {
    await create();
    counts.withoutKey += 1;
  };
  const all = Promise.all([
    ...buyers.map((buyer) => repeat("payment", 0, () => buy(buyer))),
    repeat("status", POLL_EVERY_MS, poll),
    repeat("page", VISIT_EVERY_MS, () => visit()),
    repeat("creation", CREATE_EVERY_MS, createWithoutKey),
  ]);
  return {
    async more(payments) {
      const wanted = counts.paid + payments;
      const check = () => counts.paid >= wanted || failures.length > 0;
      await waitFor(check, { within: 300_000, what: `${payments} more payments` });
      if (failures.length > 0) throw new Error(failures.slice(0, 5).join("\n"));
    },
    async stop() {
      stopped.abort();
      await all;
    },
    counts,
    failures,
  };
}
