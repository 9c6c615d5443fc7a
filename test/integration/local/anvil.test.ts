import { readdir } from "node:fs/promises";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test, vi } from "vitest";
import { localChainId, startAnvil } from "../../../local/anvil.ts";
import { guardPool } from "../../../local/anvil-pool.ts";
import { openChain } from "../../../local/chain-client.ts";
import { newKey } from "../../../local/networks-document.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { fundGas } from "../../../local/usdc.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { waitFor } from "../../support/wait-for.ts";

/** More than the number of ready transactions at which Anvil stops mining by default. */
const COUNT = 1_100;

/** Starts a local chain with a funded account. `send` sends its transaction with a nonce and does not wait for a block. */
async function startChain() {
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
  const readNonce = () => client.getTransactionCount({ address: account.address });
  return { url: anvil.url, client, address: account.address, send, readNonce };
}

test("the local chain mines more than a thousand transactions that become ready at once", async () => {
  const { send, readNonce } = await startChain();
  // They wait in the pool for the first one, which makes all of them ready.
  await Promise.all(Array.from({ length: COUNT - 1 }, (_, index) => send(index + 1)));
  await send(0);
  await waitFor(async () => (await readNonce()) === COUNT, { within: 20_000, what: "every transaction is mined" });
});

test("transactions that Anvil keeps in its queue although they could be executed are mined", async () => {
  const { url, client, address, send, readNonce } = await startChain();
  await send(1);
  await send(2);
  // As when the block with the nonce before is mined while the transaction enters the pool.
  await client.setNonce({ address, nonce: 1 });
  expect(await client.getTxpoolStatus()).toEqual({ pending: 0, queued: 2 });

  const endGuard = guardPool(url);
  addCleanup(endGuard);
  await waitFor(async () => (await readNonce()) === 3, { within: 10_000, what: "both transactions are mined" });
});

test("an Anvil that is killed leaves no states of its blocks on the disk", async () => {
  const [home, temporary] = [await makeScratch("anvil-home"), await makeScratch("anvil-temporary")];
  vi.stubEnv("HOME", home);
  vi.stubEnv("TMPDIR", temporary);
  addCleanup(() => void vi.unstubAllEnvs());
  const anvil = await startAnvil();
  const listStates = async () =>
    (await readdir(temporary, { recursive: true })).filter((path) => path.includes("anvil-states"));
  await openChain(anvil.url).mine({ blocks: 600 });
  await waitFor(async () => (await listStates()).some((path) => path.endsWith(".json")), {
    within: 20_000,
    what: "states are on the disk",
  });
  await anvil.kill("SIGKILL");
  expect(await listStates()).toEqual([]);
  expect(await readdir(home, { recursive: true })).toEqual([]);
});
