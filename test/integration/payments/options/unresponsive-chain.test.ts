import { expect, test } from "vitest";
import { openEvmChain } from "../../../../chains/evm/open-evm-chain.ts";
import { ensureCursor } from "../../../../db/queries/chain-cursors.ts";
import { addDestinations } from "../../../../payments/merchants/destinations.ts";
import { listOptions } from "../../../../payments/options/list-options.ts";
import { listEvmNetworks } from "../../../../runtime/networks/read-networks.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { waitFor } from "../../../support/wait-for.ts";

const chain = await startChain();
const silent = await startFaultProxy({ target: chain.url });
silent.delay(600_000);
const fixture = await makeMerchantFixture(chain);
const buyer = await fundBuyer(chain);

test("an unresponsive chain neither hides nor delays the options on another chain", async () => {
  const [network] = listEvmNetworks(fixture.deps.networks);
  const [asset] = network?.assets ?? [];
  if (!network || !asset) throw new Error("the networks document is empty");
  const elsewhere = { ...asset, asset: asset.asset.replace(network.chain, "eip155:31338") };
  const rpc = [{ name: "silent", url: silent.url }];
  const hanging = openEvmChain({ ...network, chain: "eip155:31338", rpc, assets: [elsewhere] }, fixture.deps.metrics);
  const paymentId = await fixture.create();
  const { merchant_id: merchantId } = await fixture.deps.db
    .selectFrom("payment")
    .select("merchant_id")
    .where("id", "=", paymentId)
    .executeTakeFirstOrThrow();
  const settlements = [{ asset: elsewhere.asset, destination: `eip155:31338:${buyer.address}` }];
  unwrap(
    await addDestinations(fixture.deps, {
      actor: testActor,
      accountId: fixture.accountId,
      mode: "live",
      merchantId,
      settlements,
    }),
  );

  // A worker started the chain before it stopped responding.
  const start = { number: 1, blockId: "0x01", dueAt: new Date(), assets: [elsewhere.asset] };
  await ensureCursor(fixture.db, { chain: hanging.chain, ...start });
  const deps = { ...fixture.deps, chains: new Map([...fixture.deps.chains, ["eip155:31338", hanging] as const]) };
  const accounts = [`eip155:31338:${buyer.address}`, fixture.accountOf(buyer)];
  const startedAt = performance.now();
  const { options } = unwrap(await listOptions(deps, { paymentId, mode: "live", accounts }));
  expect(options.map((option) => option.account)).toEqual([fixture.accountOf(buyer)]);
  expect(performance.now() - startedAt).toBeLessThan(15_000);

  // Of an account that can pay nowhere else, the silent chain decides.
  const poor = { paymentId, mode: "live" as const, accounts: [accounts[0] ?? "", `${chain.id}:0x${"e1".repeat(20)}`] };
  await expect(listOptions(deps, poor)).rejects.toMatchObject({ code: "rpc_unreachable" });
  const alone = listOptions(deps, { paymentId, mode: "live", accounts: accounts.slice(0, 1) });
  await expect(alone).rejects.toMatchObject({ code: "rpc_unreachable", transient: true });
});

test("a chain that hangs during verification does not delay payments on another chain", async () => {
  const there = await startChain({ chainId: 31_338 });
  const proxy = await startFaultProxy({ target: there.url });
  // The timeout is longer than this test may take.
  const change = { rpcTimeoutMs: 600_000 };
  const two = await makeMerchantFixture(chain, { also: [{ chain: there, rpcUrls: [proxy.url], change }] });
  const held = await two.attempt(await two.create(), await fundBuyer(there), there);
  proxy.delay(600_000);
  const hanging = two.verify(held).catch(() => undefined);
  const callsBefore = Object.values(proxy.calls).reduce((sum, count) => sum + count, 0);
  await waitFor(() => Object.values(proxy.calls).reduce((sum, count) => sum + count, 0) > callsBefore, {
    within: 20_000,
  });

  const attempt = await two.attempt(await two.create(), buyer);
  await two.verify(attempt);
  expect(await two.verificationResult(attempt)).toBe("verified");
  expect(await two.verificationResult(held)).toBe("waiting");
  proxy.refuse(true);
  proxy.delay(0);
  await proxy.close();
  await hanging;
});
