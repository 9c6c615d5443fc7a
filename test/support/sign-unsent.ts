import type { Hex } from "viem";
import { encodeTransfer } from "../../chains/evm/eip3009.ts";
import { readEvmRow } from "../../db/chain-families.ts";
import { toAuthorization } from "../../transfers/evm/authorization-calls.ts";
import type { MerchantFixture } from "./merchant-fixture.ts";

/**
 * Makes a payment, has its payout of `cents` signed and does not send it, as an attacker who has a worker does. Returns its
 * settlement, and the call with which anyone can make it.
 */
export async function signUnsent(
  fixture: MerchantFixture,
  buyer: Parameters<MerchantFixture["pay"]>[0],
  cents: bigint,
): Promise<{ id: string; call: Hex }> {
  const { id } = await fixture.settlementOf(await fixture.pay(buyer, cents));
  const begun = await fixture.settle(id);
  const row = (await fixture.transfers()).find(({ settlement_id }) => settlement_id === id);
  if (!row?.signature) throw new Error(`the payout was not signed: ${begun.join()}`);
  const signature: Hex = `0x${row.signature.toString("hex")}`;
  return { id, call: encodeTransfer(toAuthorization(readEvmRow(row)), signature) };
}
