import { concat, encodeFunctionData, erc20Abi, type Hex, numberToHex, pad } from "viem";
import { expect, test } from "vitest";
import { encodeTransfer } from "../../../../chains/evm/eip3009.ts";
import { readEvmRow } from "../../../../db/chain-families.ts";
import { listAllDeposits } from "../../../../db/queries/deposits.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { toClaim } from "../../../../payments/payouts/request-payouts.ts";
import { toAuthorization } from "../../../../transfers/evm/authorization-calls.ts";
import { RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, networksFor, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { signUnconfirmed } from "../../../support/signed-payment.ts";
import { startTestSigner } from "../../../support/test-signer.ts";
import { waitFor } from "../../../support/wait-for.ts";

/** A transaction of 13 million gas can emit as many logs. Its receipt has more than 10 MB. */
const LOGS = 30_000;
/** Code that emits empty logs, and then calls the contract in the first word of its call data with the rest of it. */
const spammer = concat([
  "0x62",
  numberToHex(LOGS, { size: 3 }),
  // Until the number is zero: log0(0, 0).
  "0x5b60006000a060019003806004576020",
  // Copies the call data behind the first word, and calls.
  "0x36038060206000376000600082600060006000355af100",
]);

const chain = await startChain();
const proxy = await startAlteringProxy({ target: chain.url });
const { token } = chain.contracts;

/** Calls the token from a contract that emits many logs before. Returns the transaction's hash. */
async function spam(data: Hex, from: Hex = newKey().address): Promise<Hex> {
  await chain.client.setCode({ address: from, bytecode: spammer });
  const hash = await chain.client.sendTransaction({ to: from, data: concat([pad(token), data]), gas: 16_000_000n });
  const { status, logs } = await chain.client.waitForTransactionReceipt({ hash });
  expect([status, logs.length > LOGS]).toEqual(["success", true]);
  return hash;
}

test("a stranger's deposit in a transaction with a receipt of more than 10 MB holds up no payment", async () => {
  const fixture = await makeMerchantFixture(chain);
  const stranger = newKey().address;
  await sendUsdc(chain, await fundBuyer(chain), stranger, 1n);
  const args = [chain.keys.treasury.address, 1n] as const;
  await spam(encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args }), stranger);
  const paymentId = await fixture.pay(await fundBuyer(chain));
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
});

const tooLarge = { code: -32_008, message: "response too large" };

test.each([
  ["with an error of the call", new RpcRefusal(tooLarge)],
  ["by its proxy", new RpcRefusal(tooLarge, 413)],
])(
  "a payment relayed in a transaction whose receipt the endpoint refuses as too large, %s, succeeds and is verified by the signer",
  async (_by, refusal) => {
    proxy.alter(undefined);
    const { signer } = await startTestSigner(chain, { rpcUrls: [proxy.url] });
    const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url], signer });
    const { paymentId, results } = await signUnconfirmed(fixture, { chain, buyer: await fundBuyer(chain) });
    const rows = fixture.db.selectFrom("payment_option").selectAll().where("payment_id", "=", paymentId);
    const authorization = toAuthorization(readEvmRow(await rows.executeTakeFirstOrThrow()));
    const hash = await spam(encodeTransfer(authorization, results[0]?.data[0] as Hex));
    proxy.alter((method, params, result) =>
      method === "eth_getTransactionReceipt" && params[0] === hash ? refusal : result,
    );
    await fixture.watch();
    await mine(chain, 1);
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
    const claims = (await listAllDeposits(fixture.db, { after: "", limit: 10 })).map(toClaim);
    expect(await signer.claimDeposits(claims)).toEqual([{ ok: true }]);
  },
);

test.each([
  ["with an error of the call", new RpcRefusal(tooLarge)],
  ["by their proxies", new RpcRefusal(tooLarge, 413)],
])(
  "a large payment relayed in a transaction whose receipt all endpoints refuse as too large, %s, succeeds",
  async (_by, refusal) => {
    const second = await startAlteringProxy({ target: chain.url });
    proxy.alter(undefined);
    const [usdc] = (await networksFor(chain)).chains[0]?.assets ?? [];
    const change = { assets: [{ ...usdc, agreementThreshold: "1000000" }] };
    const fixture = await makeMerchantFixture(chain, { change, rpcUrls: [proxy.url, second.url] });
    const { paymentId, results } = await signUnconfirmed(fixture, { chain, buyer: await fundBuyer(chain) });
    const rows = fixture.db.selectFrom("payment_option").selectAll().where("payment_id", "=", paymentId);
    const authorization = toAuthorization(readEvmRow(await rows.executeTakeFirstOrThrow()));
    const hash = await spam(encodeTransfer(authorization, results[0]?.data[0] as Hex));
    for (const one of [proxy, second])
      one.alter((method, params, result) =>
        method === "eth_getTransactionReceipt" && params[0] === hash ? refusal : result,
      );
    await waitFor(
      async () => {
        await mine(chain, 1);
        await fixture.watch();
        return (await fixture.status(paymentId)).state === "succeeded";
      },
      { within: 10_000, every: 500 },
    );
  },
);

test("a large payment succeeds when the second endpoint returns no logs, and was once too slow for the receipt", async () => {
  const second = await startAlteringProxy({ target: chain.url });
  proxy.alter(undefined);
  const [usdc] = (await networksFor(chain)).chains[0]?.assets ?? [];
  const change = { assets: [{ ...usdc, agreementThreshold: "1000000" }] };
  const fixture = await makeMerchantFixture(chain, { change, rpcUrls: [proxy.url, second.url] });
  let slow = 1;
  second.alter((method, _params, result) => {
    if (method === "eth_getLogs") return new RpcRefusal({ code: -32_601, message: "the method does not exist" });
    if (method !== "eth_getTransactionReceipt" || slow === 0) return result;
    slow -= 1;
    return new RpcRefusal(tooLarge, 504);
  });
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
  await fixture.relay();
  await waitFor(
    async () => {
      await mine(chain, 1);
      await fixture.watch();
      return (await fixture.status(paymentId)).state === "succeeded";
    },
    { within: 20_000, every: 500 },
  );
  expect(slow).toBe(0);
});
