import { encodeFunctionData, type Hex, hexToNumber, parseAbi, slice } from "viem";
import { expect, test } from "vitest";
import { fundBuyer } from "../../../support/evm-chain.ts";
import { signOption, walletActions } from "../../../support/merchant-fixture.ts";
import { createEuroPayment, PAST_QUOTE_MS, startQuotes } from "../../../support/quote-fixture.ts";
import { relayByThirdParty } from "../../../support/transfers-fixture.ts";

const { chain, assets, setPrice, makeMerchant } = await startQuotes();
const abi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
]);
type Message = { from: Hex; to: Hex; value: string; validAfter: string; validBefore: string; nonce: Hex };

test("a confirm of the quote that was signed gets the payment's status, although another relayer was faster and a newer quote asks for the same", async () => {
  const fixture = await makeMerchant([assets.usdc], { change: { finality: { blocks: 3 } } });
  await setPrice(120n);
  const { timestamp: chainTime } = await chain.client.getBlock();
  fixture.clock.advance(Math.max(0, Number(chainTime) * 1_000 - fixture.clock.now().getTime()));
  const buyer = await fundBuyer(chain);
  const paymentId = await createEuroPayment(fixture, {
    expiresAt: new Date(fixture.deps.now().getTime() + 2 * 3_600_000),
  });
  const [first] = await fixture.offer(paymentId, buyer);
  if (!first) throw new Error("nothing is offered");
  const results = await signOption(first, buyer);
  fixture.clock.advance(PAST_QUOTE_MS);
  // Another page of the buyer asks for options again; the price is the same.
  const [second] = await fixture.offer(paymentId, buyer);
  expect(second?.amount.value).toBe(first.amount.value);
  const { message } = JSON.parse(String(walletActions(first)[0]?.params[1])) as { message: Message };
  const { from, to, value, validAfter, validBefore, nonce } = message;
  const signature = String((results[0] as { data: readonly unknown[] }).data[0]) as Hex;
  const vrs = [hexToNumber(slice(signature, 64)), slice(signature, 0, 32), slice(signature, 32, 64)] as const;
  const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, ...vrs] as const;
  const timestamp = BigInt(Math.floor(fixture.clock.now().getTime() / 1_000) + 2);
  fixture.clock.advance(5_000);
  await chain.client.setNextBlockTimestamp({ timestamp });
  await relayByThirdParty(chain, encodeFunctionData({ abi, functionName: "transferWithAuthorization", args }));
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("processing");
  expect(await fixture.confirm(paymentId, first.id, results)).toEqual({ ok: true, value: { attemptId: null } });
  // The transfer is stored with the end of the newer quote, so a lane could not relay it with this signature.
  expect(await fixture.transfers()).toMatchObject([{ signature: null }]);
});
