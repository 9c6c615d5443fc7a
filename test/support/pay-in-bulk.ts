import type { Hex, PrivateKeyAccount } from "viem";
import { encodeTransfer, hashAuthorization } from "../../chains/evm/eip3009.ts";
import { encodeMulticall } from "../../chains/evm/multicall.ts";
import { deriveNonce, paymentKey } from "../../chains/natural-key.ts";
import { moveRows } from "../../db/moves.ts";
import { insertTransfers, type NewTransfer } from "../../db/queries/transfers.ts";
import { newId } from "../../payments/ids.ts";
import { fundBuyer, type TestChain } from "./evm-chain.ts";
import type { MerchantFixture } from "./merchant-fixture.ts";

/** Payments of one transaction. */
const PER_TRANSACTION = 100;
const VALID_BEFORE = 4_000_000_000;

/**
 * Makes many payments of `amount` (minor units) until their money is booked, in a few transactions. Only their rows before the
 * transactions are written directly; the watcher books them. Returns their ids.
 */
export async function payInBulk(
  chain: TestChain,
  fixture: MerchantFixture,
  { count, amount = 1_000_000n }: { count: number; amount?: bigint },
): Promise<string[]> {
  const buyer = await fundBuyer(chain, BigInt(count) * amount);
  const ids = Array.from({ length: count }, () => newId("pay", new Date()));
  for (let at = 0; at < count; at += PER_TRANSACTION) {
    const some = ids.slice(at, at + PER_TRANSACTION);
    const signed = await Promise.all(some.map((id) => signFor(fixture, { buyer, id, amount })));
    await insertProcessing(fixture, some);
    await insertTransfers(
      fixture.db,
      signed.map(({ transfer }) => transfer),
      new Date(),
    );
    const data = encodeMulticall(signed.map(({ call }) => ({ target: chain.contracts.token, data: call })));
    const hash = await chain.client.sendTransaction({ to: chain.contracts.multicall, data, gas: 20_000_000n });
    await chain.client.waitForTransactionReceipt({ hash });
  }
  const isOpen = () =>
    fixture.db
      .selectFrom("payment")
      .select("id")
      .where("id", "in", ids)
      .where("state", "<>", "succeeded")
      .executeTakeFirst();
  while (await isOpen()) await fixture.watch();
  return ids;
}

async function insertProcessing({ db, accountId, merchantId }: MerchantFixture, ids: readonly string[]): Promise<void> {
  const at = new Date();
  const rows = ids.map((id) => ({
    id,
    account_id: accountId,
    merchant_id: merchantId,
    mode: "live" as const,
    unit: "iso4217/USD",
    value: 100n,
    state: "requires_action" as const,
    created_at: at,
    updated_at: at,
    expires_at: at,
  }));
  await db.insertInto("payment").values(rows).execute();
  const from = "requires_action" as const;
  await moveRows(db, "payment", { ids, from, to: "processing", at, set: { due_at: null } });
}

/** Returns the ready transfer of a payment, and the call that makes it. */
async function signFor(
  { evm, merchantId, deps }: MerchantFixture,
  { buyer, id, amount }: { buyer: PrivateKeyAccount; id: string; amount: bigint },
): Promise<{ transfer: NewTransfer; call: Hex }> {
  const [token] = evm.tokens.values();
  if (!token?.separator) throw new Error("the chain has no token");
  const nonce = deriveNonce(deps.networks.deployment, paymentKey({ merchantId, paymentId: id }));
  const [from, to] = [buyer.address, evm.treasury as Hex];
  const authorization = { token: token.token, from, to, value: amount, validBefore: VALID_BEFORE, nonce };
  const signature = await buyer.sign({ hash: hashAuthorization(token.separator, authorization) });
  const transfer: NewTransfer = {
    id: newId("trf", new Date()),
    purpose: "payment",
    payment_id: id,
    settlement_id: null,
    refund_id: null,
    chain: evm.chain,
    asset: token.asset,
    token: token.token,
    payer: from.toLowerCase(),
    receiver: evm.treasury,
    amount,
    authorization_nonce: nonce,
    kind: "eip3009",
    valid_before: VALID_BEFORE,
    signature: Buffer.from(signature.slice(2), "hex"),
    permit: null,
    lane_id: null,
    lane_nonce: null,
    hold_until: null,
    last_error: null,
    due_at: null,
  };
  return { transfer, call: encodeTransfer(authorization, signature) };
}
