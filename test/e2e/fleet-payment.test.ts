import { expect, test } from "vitest";
import { createPayment, pay, waitFinal } from "../../local/buyer-client.ts";
import { fundBuyer, startChain, transfersTo, usdcBalance } from "../support/evm-chain.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { startFleet } from "../support/fleet.ts";
import { waitFor } from "../support/wait-for.ts";

const price = 12_500_000n;

test("a buyer without gas pays, and the merchant's own account receives the money", async () => {
  const chain = await startChain();
  const fleet = await startFleet({ chain, workers: 1 });
  const buyer = await fundBuyer(chain);

  const id = await createPayment(fleet.shop, { referenceId: "order-1", cents: "1250" });
  await pay(fleet.shop, id, buyer, chain.id);

  expect(await waitFinal(fleet.shop, id, 90_000)).toMatchObject({ status: "succeeded", isFinal: true });
  await waitFor(async () => (await usdcBalance(chain, fleet.destination)) === price, { within: 30_000 });
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
  expect(await chain.client.getBalance({ address: buyer.address })).toBe(0n);
});

test("a worker killed right after the broadcast loses no payment", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const fleet = await startFleet({ chain, rpcUrls: [proxy.url], workers: 1 });
  const buyer = await fundBuyer(chain);
  proxy.onAnswer(async (method) => {
    if (method === "eth_sendRawTransaction") await fleet.workers[0]?.kill("SIGKILL");
  });

  const id = await createPayment(fleet.shop, { referenceId: "order-2", cents: "1250" });
  await pay(fleet.shop, id, buyer, chain.id);
  await waitFor(() => fleet.workers[0]?.isGone(), { within: 30_000, what: "the worker is killed" });
  await fleet.addWorker();

  expect(await waitFinal(fleet.shop, id, 180_000)).toMatchObject({ status: "succeeded" });
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});
