import { expect, test } from "vitest";
import { fundBuyers, startChain } from "../support/evm-chain.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { confirmUntilFinal, mapConcurrently, signPayments } from "../support/sign-payments.ts";

const COUNT = 200;

test.each([
  { workers: 2, blocks: "a block per transaction", blockTime: undefined },
  { workers: 4, blocks: "blocks of a second", blockTime: 1 },
])(
  "$workers workers on one lane with $blocks pay 200 of 200 payments at concurrency 32, and each transaction that a node refuses for its nonce was accepted before",
  async ({ workers, blockTime }) => {
    const chain = await startChain({ lanes: 1, ...(blockTime === undefined ? {} : { blockTime }) });
    const proxy = await startFaultProxy({ target: chain.url });
    const accepted = new Set<unknown>();
    const refused: { bytes: unknown; reason: string }[] = [];
    proxy.onAnswer((method, [bytes], { error }) => {
      if (method !== "eth_sendRawTransaction") return;
      const reason = JSON.stringify(error) ?? "";
      if (error === undefined) accepted.add(bytes);
      else if (/nonce/i.test(reason)) refused.push({ bytes, reason });
    });
    const fleet = await startFleet({ chain, rpcUrls: [proxy.url], workers });
    const signed = await signPayments(fleet.shop, chain, await fundBuyers(chain, 16), COUNT);

    const ends = await mapConcurrently(signed, 32, (one) => confirmUntilFinal(fleet.shop, one));

    expect(ends.filter((end) => end.status !== "succeeded")).toEqual([]);
    await waitUntilIdle(fleet);
    await expectSound(fleet, chain, { succeeded: COUNT });
    // The watcher of another worker may send the same bytes first. The node then refuses them, and nothing is lost.
    const isHarmless = ({ bytes, reason }: (typeof refused)[number]) => /too low/i.test(reason) && accepted.has(bytes);
    expect(refused.filter((one) => !isHarmless(one))).toEqual([]);
    const transactionCount = await chain.client.getTransactionCount({ address: chain.keys.lanes[0]?.address ?? "0x" });
    expect(transactionCount).toBeGreaterThan(0);
  },
);
