import type { Hex, PrivateKeyAccount } from "viem";
import { encodeTransfer } from "../../chains/evm/eip3009.ts";
import { readEvmRow } from "../../db/chain-families.ts";
import { toAuthorization } from "../../transfers/evm/authorization-calls.ts";
import type { TestChain } from "./evm-chain.ts";
import { type MerchantFixture, signOption } from "./merchant-fixture.ts";
import { relayByThirdParty } from "./transfers-fixture.ts";

/**
 * Creates a payment, signs its first option as the buyer and does not confirm it. `relay` relays the signed authorization
 * as a third party and returns the transaction's hash.
 */
export async function signUnconfirmed(
  fixture: MerchantFixture,
  {
    chain,
    buyer,
    cents,
    more,
  }: { chain: TestChain; buyer: PrivateKeyAccount; cents?: bigint; more?: Parameters<MerchantFixture["create"]>[1] },
) {
  const paymentId = await fixture.create(cents, more);
  const [option] = await fixture.offer(paymentId, buyer);
  if (!option) throw new Error("there is no way to pay");
  const results = await signOption(option, buyer, chain);
  const row = await fixture.db
    .selectFrom("payment_option")
    .selectAll()
    .where("id", "=", option.id)
    .executeTakeFirstOrThrow();
  const relay = () =>
    relayByThirdParty(chain, encodeTransfer(toAuthorization(readEvmRow(row)), results[0]?.data[0] as Hex));
  return { paymentId, option, results, relay };
}
