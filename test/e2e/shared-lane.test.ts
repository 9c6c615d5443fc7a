import { expect, test } from "vitest";
import { fundBuyers, startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { confirmUntilFinal, mapConcurrently, signPayments } from "../support/sign-payments.ts";

const COUNT = 200;

test.each([
  { workers: 2, blocks: "a block per transaction", blockTime: undefined },
  { workers: 4, blocks: "blocks of a second", blockTime: 1 },
])(
  "$workers workers on one lane with $blocks pay 200 of 200 payments at concurrency 32 without a nonce error",
  async ({ workers, blockTime }) => {
    const chain = await startChain({ lanes: 1, ...(blockTime === undefined ? {} : { blockTime }) });
    const fleet = await startFleet({ chain, workers });
    const signed = await signPayments(fleet.shop, chain, await fundBuyers(chain, 16), COUNT);

    const ends = await mapConcurrently(signed, 32, (one) => confirmUntilFinal(fleet.shop, one));

    expect(ends.filter((end) => end.status !== "succeeded")).toEqual([]);
    await waitUntilIdle(fleet);
    await expectSound(fleet, chain, { succeeded: COUNT });
    const nonceErrors = fleet.workers
      .flatMap((worker) => worker.lines)
      .filter((line) => /nonce_too_low|nonce too/i.test(line));
    expect(nonceErrors).toEqual([]);
    const transactionCount = await chain.client.getTransactionCount({ address: chain.keys.lanes[0]?.address ?? "0x" });
    expect(transactionCount).toBeGreaterThan(0);
  },
);
