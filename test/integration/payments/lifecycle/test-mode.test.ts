import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { encodeTransfer } from "../../../../chains/evm/eip3009.ts";
import { readEvmRow } from "../../../../db/chain-families.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { toAuthorization } from "../../../../transfers/evm/authorization-calls.ts";
import { fundBuyer, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

const chain = await startChain();
const proxy = await startFaultProxy({ target: chain.url });
const fixture = await makeMerchantFixture(chain, { mode: "test", rpcUrls: [proxy.url] });

test("a confirmed test payment succeeds immediately as test:<id> and moves no money", async () => {
  const penniless = privateKeyToAccount(newKey().privateKey);
  const id = await fixture.create(100n);
  proxy.refuse(true);
  const attempt = await fixture.attempt(id, penniless);
  await fixture.verify(attempt);
  proxy.refuse(false);
  expect(await fixture.verificationResult(attempt)).toBe("verified");
  expect(await fixture.status(id)).toMatchObject({
    state: "succeeded",
    info: { txId: `test:${id}`, optionAmount: { value: 1_000_000n } },
  });
  expect(await fixture.transfers()).toEqual([]);
  expect(await fixture.db.selectFrom("settlement").select("id").execute()).toEqual([]);
  expect(await fixture.db.selectFrom("ledger_group").select("id").execute()).toEqual([]);
});

test("a signature made in test mode can never move money, because the token refuses it", async () => {
  const buyer = await fundBuyer(chain);
  const id = await fixture.create(100n);
  const attempt = await fixture.attempt(id, buyer);
  const option = await fixture.db
    .selectFrom("payment_option")
    .selectAll()
    .where("payment_id", "=", id)
    .executeTakeFirstOrThrow();
  const row = await fixture.db.selectFrom("attempt").selectAll().where("id", "=", attempt).executeTakeFirstOrThrow();
  const [{ data }] = row.results as [{ data: [Hex] }];
  const call = { to: chain.contracts.token, data: encodeTransfer(toAuthorization(readEvmRow(option)), data[0]) };
  await expect(chain.client.call(call)).rejects.toThrow(/authorization is expired/);
  // The token also refuses it when the transaction is sent without a simulation.
  const hash = await chain.client.sendTransaction({ ...call, gas: 200_000n });
  expect((await chain.client.waitForTransactionReceipt({ hash })).status).toBe("reverted");
  expect(await transfersTo(chain, chain.keys.treasury.address)).toEqual([]);
});

test("a signature by another key is refused in test mode too, and the payment stays open", async () => {
  const [one, other] = [newKey(), newKey()].map(({ privateKey }) => privateKeyToAccount(privateKey));
  if (!one || !other) throw new Error("no keys");
  const id = await fixture.create();
  const attempt = await fixture.attempt(id, { ...other, address: one.address } as typeof other);
  await fixture.verify(attempt);
  expect(await fixture.verificationResult(attempt)).toMatchObject({
    refused: expect.stringContaining("not the account's"),
  });
  expect((await fixture.status(id)).state).toBe("requires_action");
});

test("each state move of a test payment is counted in the metrics", async () => {
  const own = await makeMerchantFixture(chain, { mode: "test" });
  await own.verify(await own.attempt(await own.create(), privateKeyToAccount(newKey().privateKey)));
  const moves = (await own.deps.metrics.paymentTransitions.get()).values.map(({ labels, value }) => ({
    ...labels,
    value,
  }));
  expect(moves).toEqual([
    { mode: "test", from: "new", to: "requires_action", value: 1 },
    { mode: "test", from: "requires_action", to: "processing", value: 1 },
    { mode: "test", from: "processing", to: "succeeded", value: 1 },
  ]);
});
