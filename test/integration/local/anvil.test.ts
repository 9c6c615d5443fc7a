import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { localChainId, startAnvil } from "../../../local/anvil.ts";
import { openChain } from "../../../local/chain-client.ts";
import { newKey } from "../../../local/networks-document.ts";
import { fundGas } from "../../../local/usdc.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { waitFor } from "../../support/wait-for.ts";

/** More than the number of ready transactions at which Anvil stops mining by default. */
const COUNT = 1_100;

test("the local chain mines more than a thousand transactions that become ready at once", async () => {
  const anvil = await startAnvil();
  addCleanup(() => anvil.close());
  const client = openChain(anvil.url);
  const account = privateKeyToAccount(newKey().privateKey);
  await fundGas(client, [account.address]);
  const send = async (nonce: number) => {
    const fees = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n };
    const call = { type: "eip1559", chainId: localChainId, to: account.address, gas: 21_000n, nonce } as const;
    const serializedTransaction = await account.signTransaction({ ...call, ...fees });
    await client.sendRawTransaction({ serializedTransaction });
  };
  // They wait in the pool for the first one, which makes all of them ready.
  await Promise.all(Array.from({ length: COUNT - 1 }, (_, index) => send(index + 1)));
  await send(0);

  const readNonce = () => client.getTransactionCount({ address: account.address });
  await waitFor(async () => (await readNonce()) === COUNT, { within: 20_000, what: "every transaction is mined" });
  expect(await readNonce()).toBe(COUNT);
});
