import { concat, encodeAbiParameters, encodeFunctionData, type Hex, maxUint256, pad } from "viem";
import { expect, test } from "vitest";
import { AUTHORIZATION_USED_TOPIC, TRANSFER_TOPIC } from "../../../../chains/evm/abi.ts";
import { encodeMulticall } from "../../../../chains/evm/multicall.ts";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { deployTestContract, testContract } from "../../../support/test-contracts.ts";
import { startTokenKinds, tokenOf } from "../../../support/token-kinds.ts";

const amount = (value: bigint) => encodeAbiParameters([{ type: "uint256" }], [value]);
/** A day of an account has 16 sums, each of which holds eight times the largest uint256. */
const LARGEST = 16 * 8 + 1;
const word = (byte: string): Hex => `0x${byte.repeat(32)}`;

test("a token that emits arbitrary logs does not stop payments in other tokens, finality or bookings", async () => {
  const kinds = await startTokenKinds();
  const { chain } = kinds;
  const fixture = await makeMerchantFixture(chain, { change: kinds.change, assets: [kinds.assets.usdc] });
  const treasury = pad(chain.keys.treasury.address);
  const stranger = word("77");
  const address = tokenOf(kinds.assets.push);
  const noisy = await deployTestContract(chain.client, "Tokens", "NoisyToken");
  await chain.client.setCode({ address, bytecode: (await chain.client.getCode({ address: noisy })) ?? "0x" });
  const { abi } = testContract("Tokens", "NoisyToken");
  const emit = async (topics: Hex[], data: Hex) => {
    const hash = await chain.client.writeContract({ address, abi, functionName: "emitLog", args: [topics, data] });
    expect((await chain.client.waitForTransactionReceipt({ hash })).logs).toHaveLength(1);
  };

  // An open payment whose payer and authorization nonce the token knows.
  const buyer = await fundBuyer(chain);
  const open = await fixture.create();
  await fixture.offer(open, buyer);
  const option = await fixture.db.selectFrom("payment_option").selectAll().executeTakeFirstOrThrow();
  const payer = pad(option.payer as Hex);

  await emit([AUTHORIZATION_USED_TOPIC, payer, option.authorization_nonce as Hex], "0x");
  await emit([TRANSFER_TOPIC, payer, treasury], amount(option.amount));
  const largest = encodeFunctionData({
    abi,
    functionName: "emitLog",
    args: [[TRANSFER_TOPIC, stranger, treasury], amount(maxUint256)],
  });
  const data = encodeMulticall(Array.from({ length: LARGEST }, () => ({ target: address, data: largest })));
  const hash = await chain.client.sendTransaction({ to: chain.contracts.multicall, data });
  expect((await chain.client.waitForTransactionReceipt({ hash })).logs).toHaveLength(LARGEST);
  for (const [topics, data] of [
    [[TRANSFER_TOPIC, stranger, treasury], amount(0n)],
    [[TRANSFER_TOPIC, treasury, stranger], amount(0n)],
    [[TRANSFER_TOPIC, treasury, treasury], amount(5n)],
    [[TRANSFER_TOPIC, treasury, stranger], amount(maxUint256)],
    [[TRANSFER_TOPIC, stranger, treasury], "0x"],
    [[TRANSFER_TOPIC, stranger, treasury], concat([amount(5n), amount(5n)])],
    [[TRANSFER_TOPIC, stranger, treasury, word("01")], amount(5n)],
    [[TRANSFER_TOPIC, stranger], amount(5n)],
    [[TRANSFER_TOPIC], "0x"],
    [[AUTHORIZATION_USED_TOPIC], "0x"],
    [[AUTHORIZATION_USED_TOPIC, stranger], amount(5n)],
    [[AUTHORIZATION_USED_TOPIC, stranger, word("02"), word("03")], amount(5n)],
  ] as [Hex[], Hex][])
    await emit(topics, data);
  await fixture.watch();
  await fixture.watch();

  expect((await fixture.status(open)).state).toBe("requires_action");
  const paymentId = await fixture.pay(await fundBuyer(chain));
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  const { number, final_number } = await fixture.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
  expect([number, final_number]).toEqual([number, number]);
  // One sum of the day overflows: the movements beyond it become failed bookings.
  const failed = await fixture.db.selectFrom("failed_booking").selectAll().execute();
  expect(failed.length).toBeGreaterThan(0);
  expect(new Set(failed.map(({ kind }) => kind))).toEqual(new Set(["unmatched"]));
  expect(failed[0]?.error).toContain("overflow");
  const listed = await listExceptions(fixture.deps, 1_000);
  expect(listed.filter((one) => one.amount === maxUint256).length).toBe(LARGEST - failed.length);
  expect(listed.filter((one) => one.amount === option.amount)).toHaveLength(1);
});

test("a log that an endpoint lists twice is booked once", async () => {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  proxy.alter((method, _params, result) =>
    method === "eth_getLogs" ? [...(result as unknown[]), ...(result as unknown[])] : result,
  );
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url] });
  const paymentId = await fixture.pay(await fundBuyer(chain));
  await mine(chain);
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await fixture.db.selectFrom("observation").select("transfer_id").execute()).toHaveLength(1);
  expect(await fixture.db.selectFrom("failed_booking").selectAll().execute()).toEqual([]);
});
