import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { confirm } from "../../local/buyer-client.ts";
import { onEachRedisNode } from "../../local/redis-nodes.ts";
import type { Service } from "../../local/service.ts";
import {
  createPaymentChangePublisher,
  paymentChanges,
  subscribeToPaymentChanges,
} from "../../queues/payment-changes.ts";
import { queuePrefix } from "../../queues/queue-prefix.ts";
import { openSubscriber } from "../../queues/redis-connections.ts";
import { addCleanup } from "../support/cleanups.ts";
import { fundBuyers, startChain } from "../support/evm-chain.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { startMonitoredRedis } from "../support/redis-sentinel.ts";
import { confirmUntilFinal, type SignedPayment, signPayments } from "../support/sign-payments.ts";
import { openQueues } from "../support/test-queues.ts";
import { waitFor } from "../support/wait-for.ts";

const COUNT = 12;
const prefix = "pay";
const failover = { within: 30_000, what: "another server is the master" };

test.concurrent("a cluster that loses a master with its acknowledged jobs, and another one under load, loses no payment", async () => {
  const [cluster, chain] = await Promise.all([startRedisCluster({ replicas: true }), startChain()]);
  addCleanup(() => cluster.close());
  const fleet = await startFleet({ chain, redis: { url: cluster.url, prefix }, workers: 1 });
  const buyers = await fundBuyers(chain, 6);
  const signed = await signPayments(fleet.shop, chain, buyers, 2 * COUNT);
  // Buyers get options once a worker reads the chain. No worker may take the jobs of the confirms.
  await fleet.workers[0]?.kill("SIGTERM");
  const [early, late] = [signed.slice(0, COUNT), signed.slice(COUNT)];
  const queues = await openQueues({ url: cluster.url, prefix });
  const messages = subscribe(cluster.url);

  // The master acknowledges jobs that its replica never gets.
  const jobs = await cluster.ownersOf(`${queuePrefix(prefix, "verify-signature")}:`);
  const pid = jobs.replica?.pid() ?? 0;
  process.kill(pid, "SIGSTOP");
  await onEachRedisNode(jobs.master.url, (node) => node.call("CLIENT", "KILL", "TYPE", "replica"));
  await Promise.all(early.map(({ paymentId, ...rest }) => confirm(fleet.shop, paymentId, rest)));
  const countWaiting = () => queues.queue("verify-signature").getWaitingCount();
  expect(await countWaiting()).toBeGreaterThan(0);
  await jobs.master.kill("SIGKILL");
  process.kill(pid, "SIGCONT");
  await waitFor(
    () =>
      countWaiting()
        .then((count) => count === 0)
        .catch(() => false),
    failover,
  );

  await Promise.all([fleet.addWorker(), fleet.addWorker()]);
  const paying = [...early, ...late].map((one) => confirmUntilFinal(fleet.shop, one));
  await Promise.race(paying);
  const channel = paymentChanges(prefix);
  const announcements = await cluster.ownersOf(channel);
  await announcements.master.kill("SIGKILL");

  await expectPaid(fleet, chain, paying, signed);
  const publish = createPaymentChangePublisher(queues.redis, prefix);
  await waitFor(async () => {
    await publish(["after"]);
    return messages.includes("after");
  }, failover);
  await expectNoRefusals(cluster.servers);
});

test.concurrent("a switch of the master by Sentinel, planned or after a crash, loses no payment", async () => {
  const [monitored, chain] = await Promise.all([startMonitoredRedis(), startChain()]);
  addCleanup(() => monitored.close());
  const fleet = await startFleet({ chain, redis: { url: monitored.url, prefix } });
  const signed = await signPayments(fleet.shop, chain, await fundBuyers(chain, 6), 2 * COUNT);
  const messages = subscribe(monitored.url);
  const queues = await openQueues({ url: monitored.url, prefix });

  const early = signed.slice(0, COUNT).map((one) => confirmUntilFinal(fleet.shop, one));
  await Promise.race(early);
  await monitored.switchMaster();
  await Promise.all(early);
  const isReplica = (info: string) => info.includes("role:slave") && info.includes("master_link_status:up");
  const former = new Redis(monitored.master.url);
  addCleanup(() => former.disconnect());
  await waitFor(async () => isReplica(await former.info("replication").catch(() => "")), failover);
  const late = signed.slice(COUNT).map((one) => confirmUntilFinal(fleet.shop, one));
  await Promise.race(late);
  await monitored.replica.kill("SIGKILL");

  await expectPaid(fleet, chain, [...early, ...late], signed);
  const publish = createPaymentChangePublisher(queues.redis, prefix);
  await waitFor(async () => {
    await publish(["after"]);
    return messages.includes("after");
  }, failover);
  await expectNoRefusals([monitored.master, monitored.replica]);
});

/** Subscribes to the changed payments. Returns the list to which their ids are added. */
function subscribe(url: string): string[] {
  const ids: string[] = [];
  const subscriber = openSubscriber(url, paymentChanges(prefix), () => undefined);
  addCleanup(() => subscriber.disconnect());
  subscribeToPaymentChanges(subscriber, prefix, (id) => void ids.push(id));
  return ids;
}

async function expectPaid(
  fleet: Fleet,
  chain: Parameters<typeof expectSound>[1],
  paying: readonly Promise<{ status: string }>[],
  signed: readonly SignedPayment[],
): Promise<void> {
  const ends = await Promise.all(paying);
  expect(ends.map(({ status }) => status)).toEqual(signed.map(() => "succeeded"));
  await waitUntilIdle(fleet);
  await expectSound(fleet, chain, { succeeded: signed.length });
}

/** Expects that no server that runs has refused a command or a key to the users of ops/redis/users.acl. */
async function expectNoRefusals(servers: readonly Service[]): Promise<void> {
  const running = servers.filter((server) => server.pid() !== undefined);
  const logs = await Promise.all(running.map(({ url }) => onEachRedisNode(url, (node) => node.call("ACL", "LOG"))));
  expect(logs.flat(2)).toEqual([]);
}
