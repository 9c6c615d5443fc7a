import { expect, test } from "vitest";
import { openChain } from "../../../local/chain-client.ts";
import { startChain } from "../../support/evm-chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { waitFor } from "../../support/wait-for.ts";

test("the receipt of a transaction in the newest block is found, also when that block is mined during a poll", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const client = openChain(proxy.url);
  await client.setAutomine(false);
  const hash = await client.sendTransaction({
    to: chain.contracts.token,
    value: 0n,
    data: "0x06fdde03",
    gas: 100_000n,
  });
  const asked = (method: string) => proxy.calls[method] ?? 0;
  let mined = false;
  proxy.onAnswer(async (method) => {
    // viem reads the block before it asks for the receipt a third time.
    if (mined || (method !== "eth_getBlockByNumber" && asked("eth_getTransactionReceipt") < 3)) return;
    mined = true;
    await chain.client.mine({ blocks: 1 });
    if (method !== "eth_getBlockByNumber") return;
    // The client sees the new height before it gets this answer.
    const polls = asked("eth_blockNumber");
    await waitFor(() => asked("eth_blockNumber") > polls + 1, { within: 20_000 });
  });
  expect(await client.waitForTransactionReceipt({ hash, timeout: 40_000 })).toMatchObject({ transactionHash: hash });
});
