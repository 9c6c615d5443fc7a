import { expect, test } from "vitest";
import { newSolanaKey } from "../../local/solana-client.ts";
import { fundTokens } from "../../local/spl-tokens.ts";
import { execute } from "../support/execute-sql.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { startFleet } from "../support/fleet.ts";
import { clearFaults, killAtSend, killMoments } from "../support/kill-at-send.ts";
import { describeSolanaDeployment } from "../support/solana-merchant-fixture.ts";
import { spawnSigner } from "../support/spawn-signer.ts";
import { openQueues } from "../support/test-queues.ts";
import { makeSolanaKeys, startTestSolana, tokenBalance } from "../support/test-solana.ts";
import { waitFor } from "../support/wait-for.ts";

const TARGET = 3_000_000n;
const EXCESS = 6_000_000n;

test("each excess on Solana moves to the cold address once, although the signer is killed after it recorded the transfer, and the worker before its broadcast, after it, and before the response arrives", async () => {
  const chain = await startTestSolana({ slotMs: 100 });
  const { asset } = chain;
  const proxy = await startFaultProxy({ target: chain.url });
  const keys = await makeSolanaKeys(chain);
  const { SOLANA_TREASURY_KEY = "", ...lanes } = keys.env;
  const cold = newSolanaKey().address;
  const hotBalance = { floor: "0", ceiling: "5000000", cold: { address: cold, target: String(TARGET) } };
  const document = await describeSolanaDeployment(chain, keys);
  const spawned = await spawnSigner(document, [asset], { SOLANA_TREASURY_KEY }, { asset: { hotBalance } });
  let signerProcess = spawned.process;
  const fleet = await startFleet({
    solana: { chain, keys: { ...keys, env: lanes }, rpcUrls: [proxy.url], change: { nonceAccounts: 3 } },
    workers: 1,
    env: { SIGNER: `unix:${spawned.socketPath}` },
  });
  const queues = await openQueues(fleet.redis);
  const cluster = chain.id;
  let at = 0;
  /** Asks a worker to move the excess, as the sweep does once in a minute. */
  const ask = () => queues.enqueue("move-excess", [{ data: { chain: cluster, at: ++at } }]);
  const transfers = () =>
    execute(fleet.databaseUrl, "select state, amount::text from transfer where purpose = 'cold' order by created_at");
  const confirmed = { state: "confirmed", amount: String(EXCESS) };

  // The worker has sent the transactions that create its accounts, which the proxy must not hold.
  const hasStarted = async () => (await execute(fleet.databaseUrl, "select from chain_cursor")).length > 0;
  await waitFor(hasStarted, { within: 60_000, what: "the worker has created its accounts" });

  for (const [index, moment] of killMoments.entries()) {
    // The worker's own sweep may ask for the transfer too. Its broadcast waits until the kill is prepared.
    const prepared = Promise.withResolvers<void>();
    proxy.hold(({ method }) => (method === "sendTransaction" ? prepared.promise : undefined));
    const held = index === 0 ? TARGET + EXCESS : EXCESS;
    await fundTokens(chain.client, chain.mint, [keys.treasury.address], held);
    const recorded = await waitFor(
      async () => {
        const answer = await spawned.signer.moveExcess({ asset, pending: 0n });
        // Until the transfer before is final at the signer's own endpoint, every answer names that one.
        return answer.ok && answer.transfer?.number === index + 1 ? answer.transfer : undefined;
      },
      { within: 20_000, what: "the signer records a transfer" },
    );
    expect(recorded).toMatchObject({ amount: EXCESS, receiver: cold });
    await signerProcess.kill("SIGKILL");
    signerProcess = await spawned.start();

    const worker = fleet.workers.at(-1);
    killAtSend(proxy, { worker, moment, method: "sendTransaction" });
    proxy.hold(undefined);
    prepared.resolve();
    await waitFor(() => ask().then(() => worker?.isGone()), {
      within: 40_000,
      every: 500,
      what: "the worker is killed",
    });
    await fleet.addWorker();
    const balance = EXCESS * BigInt(index + 1);
    await waitFor(async () => (await tokenBalance(chain, cold)) === balance, { within: 40_000, what: "the transfer" });
    const booked = Array.from({ length: index + 1 }, () => confirmed);
    await waitFor(async () => JSON.stringify(await transfers()) === JSON.stringify(booked), {
      within: 40_000,
      what: "the booking",
    });
  }
  clearFaults(proxy);
  await ask();
  await waitFor(async () => (await queues.count("move-excess")).all === 0, {
    within: 20_000,
    what: "the last request",
  });
  expect(await transfers()).toHaveLength(killMoments.length);
  expect([await tokenBalance(chain, cold), await tokenBalance(chain, keys.treasury.address)]).toEqual([
    EXCESS * 3n,
    TARGET,
  ]);
});
