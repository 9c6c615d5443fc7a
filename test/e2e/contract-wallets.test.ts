import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { confirm, createPayment, listOptions, pay, signOption, waitFinal } from "../../local/buyer-client.ts";
import { newKey } from "../../local/networks-document.ts";
import { mintUsdc } from "../../local/usdc.ts";
import { fundBuyer, startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { deployFactory, deployWallet } from "../support/smart-wallets.ts";

test("a contract wallet pays through the last of two lanes while an externally owned account pays through the first", async () => {
  const chain = await startChain({ lanes: 2 });
  const fleet = await startFleet({ chain });
  const owner = privateKeyToAccount(newKey().privateKey);
  const wallet = await deployWallet(chain, await deployFactory(chain), owner.address);
  await mintUsdc(chain.client, chain.contracts.token, [wallet], 1_000_000_000n);
  const [byWallet, byKey] = [
    await createPayment(fleet.shop, { referenceId: "wallet", cents: "1250" }),
    await createPayment(fleet.shop, { referenceId: "key", cents: "1250" }),
  ];
  const [option] = await listOptions(fleet.shop, byWallet, [`${chain.id}:${wallet}`]);
  if (!option) throw new Error("there is no way to pay");
  const results = await signOption(fleet.shop, byWallet, option, owner);
  await confirm(fleet.shop, byWallet, { optionId: option.id, results });
  await pay(fleet.shop, byKey, await fundBuyer(chain), chain.id);
  const senders = new Map<string, string>();
  for (const id of [byWallet, byKey]) {
    const status = await waitFinal(fleet.shop, id, 90_000);
    expect(status).toMatchObject({ status: "succeeded" });
    const { from } = await chain.client.getTransaction({ hash: status.info?.txId as Hex });
    senders.set(id, from);
  }
  const [first, last] = chain.keys.lanes.map(({ address }) => address.toLowerCase());
  expect([senders.get(byWallet), senders.get(byKey)]).toEqual([last, first]);
  await waitUntilIdle(fleet);
  await expectSound(fleet, chain, { succeeded: 2 });
});
