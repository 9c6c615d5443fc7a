import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { makeTransfersFixture, waitUntilMined } from "../../../support/transfers-fixture.ts";

test.each([
  ["logs", "eth_getLogs", [{ blockHash: "0x01", blockNumber: "0x1", logIndex: "zz" }]],
  [
    "blocks",
    "eth_getBlockByNumber",
    { hash: "0x01", number: "0x1", timestamp: "0x1", baseFeePerGas: "zz", transactions: [] },
  ],
])("a chain of three endpoints goes on when the second one answers with malformed %s", async (_what, of, answer) => {
  const chain = await startChain();
  const [liar, third] = [
    await startAlteringProxy({ target: chain.url }),
    await startAlteringProxy({ target: chain.url }),
  ];
  const rpcUrls = [chain.url, liar.url, third.url];
  const fixture = await makeTransfersFixture(chain, { rpcUrls, change: { finality: { blocks: 2 } } });
  await fixture.watch();
  liar.alter((method, _params, result) => (method === of ? answer : result));
  const { id } = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  await waitUntilMined(chain);
  await mine(chain, 2);
  await fixture.watch();
  expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
});
