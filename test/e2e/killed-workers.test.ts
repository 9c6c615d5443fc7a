import { expect, test } from "vitest";
import { createPayment, pay, waitFinal } from "../../local/buyer-client.ts";
import { fundBuyer, fundBuyers, startChain, transfersTo } from "../support/evm-chain.ts";
import { execute } from "../support/execute-sql.ts";
import { type Call, startFaultProxy } from "../support/fault-proxy.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { inRealTime } from "../support/in-real-time.ts";
import { clearFaults, killAtSend, killMoments } from "../support/kill-at-send.ts";
import { waitFor } from "../support/wait-for.ts";

const isSend = ({ method }: Call) => method === "eth_sendRawTransaction";

/** Returns the worker that holds the chain's lane, by the process id in the owner's name. */
async function findHolder(fleet: Fleet): Promise<number | undefined> {
  const [lane] = (await execute(fleet.databaseUrl, "select owner from lane where owner is not null")) as {
    owner: string;
  }[];
  return fleet.workers.find(({ pid }) => lane?.owner.includes(`-${pid}-`))?.pid;
}

test(
  "a worker frozen during a broadcast loses its lane within seconds and writes nothing when it resumes",
  inRealTime,
  async () => {
    const chain = await startChain();
    const proxy = await startFaultProxy({ target: chain.url });
    const fleet = await startFleet({ chain, rpcUrls: [proxy.url], workers: 2 });
    const [first, second] = await fundBuyers(chain, 2);
    if (!first || !second) throw new Error("there are no buyers");
    // The transaction is stored, and its broadcast takes longer than this test.
    let held = false;
    proxy.delay(180_000, (call) => {
      if (!isSend(call) || held) return false;
      held = true;
      return true;
    });
    const one = await createPayment(fleet.shop, { referenceId: "one", cents: "1250" });
    await pay(fleet.shop, one, first, chain.id);
    await waitFor(() => held, { within: 20_000, what: "a send that hangs" });
    const pid = await findHolder(fleet);
    if (pid === undefined) throw new Error("no worker holds the lane");
    process.kill(pid, "SIGSTOP");
    const frozenAt = Date.now();
    const two = await createPayment(fleet.shop, { referenceId: "two", cents: "1250" });
    await pay(fleet.shop, two, second, chain.id);
    for (const id of [one, two]) expect(await waitFinal(fleet.shop, id, 90_000)).toMatchObject({ status: "succeeded" });
    expect(Date.now() - frozenAt).toBeLessThan(60_000);

    const rows = () => execute(fleet.databaseUrl, "select * from transaction order by nonce, replacement");
    await waitUntilIdle(fleet);
    const before = await rows();
    const { next_nonce: next } =
      ((await execute(fleet.databaseUrl, "select next_nonce from lane")) as { next_nonce: string }[])[0] ?? {};
    process.kill(pid, "SIGCONT");
    const third = await createPayment(fleet.shop, { referenceId: "three", cents: "1250" });
    await pay(fleet.shop, third, await fundBuyer(chain), chain.id);
    expect(await waitFinal(fleet.shop, third, 90_000)).toMatchObject({ status: "succeeded" });
    await waitUntilIdle(fleet);
    expect((await rows()).slice(0, before.length)).toEqual(before);
    expect(before).toHaveLength(Number(next));
    await expectSound(fleet, chain, { succeeded: 3 });
  },
);

test("a worker killed before its broadcast arrives, after the chain accepts it, and before the response arrives loses no payment and pays none twice", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const fleet = await startFleet({ chain, rpcUrls: [proxy.url], workers: 1 });
  const ids: string[] = [];
  for (const moment of killMoments) {
    const worker = fleet.workers.at(-1);
    killAtSend(proxy, { worker, moment, method: "eth_sendRawTransaction" });
    const id = await createPayment(fleet.shop, { referenceId: "order", cents: "1250" });
    await pay(fleet.shop, id, await fundBuyer(chain), chain.id);
    ids.push(id);
    await waitFor(() => worker?.isGone(), { within: 30_000, what: "the worker is killed" });
    await fleet.addWorker();
    expect(await waitFinal(fleet.shop, id, 180_000)).toMatchObject({ status: "succeeded" });
  }
  clearFaults(proxy);
  await waitUntilIdle(fleet);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(ids.length);
  await expectSound(fleet, chain, { succeeded: ids.length });
});
