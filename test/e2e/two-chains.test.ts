import { expect, test } from "vitest";
import { createPayment, getStatus, pay, waitFinal } from "../../local/buyer-client.ts";
import { fundBuyer, startChain, type TestChain, transfersTo, usdcBalance } from "../support/evm-chain.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { waitFor } from "../support/wait-for.ts";

const price = 12_500_000n;
const SECOND = 31_338;

async function buy(fleet: Fleet, chain: TestChain): Promise<string> {
  // The payment must not expire while its chain is unreachable, however slow the machine is.
  const expiresAt = new Date(Date.now() + 1_800_000);
  const id = await createPayment(fleet.shop, { referenceId: "order", cents: "1250", expiresAt });
  await pay(fleet.shop, id, await fundBuyer(chain), chain.id);
  return id;
}

test("payments on one chain continue while another chain is unreachable, workers start without it, and they catch up with it afterwards", async () => {
  const [here, there] = await Promise.all([startChain(), startChain({ chainId: SECOND })]);
  expect([here.id, there.id]).toEqual(["eip155:31337", "eip155:31338"]);
  const proxy = await startFaultProxy({ target: there.url });
  const fleet = await startFleet({ chain: here, also: [{ chain: there, rpcUrls: [proxy.url] }] });
  const paid = async (id: string) =>
    expect(await waitFinal(fleet.shop, id, 90_000)).toMatchObject({ status: "succeeded" });
  const arrived = (chain: TestChain, payments: bigint) =>
    waitFor(async () => (await usdcBalance(chain, fleet.destination)) === payments * price, { within: 30_000 });

  const both = await Promise.all([buy(fleet, here), buy(fleet, there)]);
  await Promise.all([...both.map(paid), arrived(here, 1n), arrived(there, 1n)]);

  // The payment is accepted, and then its chain becomes unreachable.
  proxy.fail(({ method }) => (method === "eth_sendRawTransaction" ? { code: -32_000, message: "no" } : undefined));
  const waits = await buy(fleet, there);
  proxy.refuse(true);
  await paid(await buy(fleet, here));
  await Promise.all(fleet.workers.map((worker) => worker.kill("SIGKILL")));
  await fleet.addWorker();
  await paid(await buy(fleet, here));
  expect(await getStatus(fleet.shop, waits)).toMatchObject({ status: "processing" });

  proxy.fail(undefined);
  proxy.refuse(false);
  await paid(waits);
  await Promise.all([arrived(here, 3n), arrived(there, 2n)]);
  for (const [chain, payments] of [
    [here, 3],
    [there, 2],
  ] as const)
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(payments);
});
