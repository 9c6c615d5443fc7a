import { encodeFunctionData, type Hex, hexToNumber, type PrivateKeyAccount, parseAbi, parseEther, slice } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { cleanUp, deleteLateQuotes } from "../../../../payments/maintenance/clean-up.ts";
import { setFee } from "../../../../payments/merchants/fee-policies.ts";
import type { OptionView } from "../../../../payments/views.ts";
import { fundBuyer, mine } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { type MerchantFixture, signOption, unwrap, walletActions } from "../../../support/merchant-fixture.ts";
import { createEuroPayment, PAST_QUOTE_MS, startQuotes } from "../../../support/quote-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { mintTestToken } from "../../../support/token-kinds.ts";
import { relayByThirdParty } from "../../../support/transfers-fixture.ts";

const { chain, assets, setPrice, makeMerchant } = await startQuotes();
const UNIT = 1_000_000n;
const HOUR_MS = 3_600_000;
const abi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
]);
type Message = { from: Hex; to: Hex; value: string; validAfter: string; validBefore: string; nonce: Hex };

async function makePusher(): Promise<PrivateKeyAccount> {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.push, buyer.address);
  await chain.client.setBalance({ address: buyer.address, value: parseEther("1") });
  return buyer;
}
async function offerOne(fixture: MerchantFixture, paymentId: string, buyer: { address: string }) {
  const [option] = await fixture.offer(paymentId, buyer);
  if (!option) throw new Error("there is no way to pay");
  return option;
}
const setFeePoints = ({ deps, accountId }: MerchantFixture, basisPoints: number) =>
  setFee(deps, { actor: testActor, accountId, merchantId: null, basisPoints, fixedMicros: 0n });
const idsOf = async (fixture: MerchantFixture, paymentId: string) => {
  const rows = await fixture.db.selectFrom("payment_option").select("id").where("payment_id", "=", paymentId).execute();
  return rows.map(({ id }) => id);
};

describe("quotes", () => {
  test("a quote is stored once, however often and in whatever spelling its account asks", async () => {
    const fixture = await makeMerchant([assets.usdc]);
    await setPrice(120n);
    const { address } = await fundBuyer(chain);
    for (const paymentId of [await fixture.create(100n), await createEuroPayment(fixture)]) {
      await Promise.all(Array.from({ length: 8 }, () => fixture.offer(paymentId, { address })));
      for (const spelling of [address, address.toLowerCase(), address]) {
        const option = await offerOne(fixture, paymentId, { address: spelling });
        expect(option.account).toBe(fixture.accountOf({ address: spelling }));
      }
      expect(await idsOf(fixture, paymentId)).toHaveLength(1);
    }
  });

  test("the database refuses to change a quote", async () => {
    const fixture = await makeMerchant([assets.usdc]);
    const { id } = await offerOne(fixture, await fixture.create(100n), await fundBuyer(chain));
    for (const change of ["amount = 5", "receiver = 'r'", "fee = 1", "quoted_until = now(), rate = 'r'"])
      await expect(
        execute(fixture.databaseUrl, `update payment_option set ${change} where id = '${id}'`),
      ).rejects.toThrow("a quote never changes");
  });

  test("the signed quote decides the fee, even when a newer quote has been shown", async () => {
    const fixture = await makeMerchant([assets.usdc]);
    await setFeePoints(fixture, 500);
    const buyer = await fundBuyer(chain);
    const paymentId = await fixture.create(1_000n);
    const first = await offerOne(fixture, paymentId, buyer);
    await setFeePoints(fixture, 1_000);
    const second = await offerOne(fixture, paymentId, buyer);
    expect(second.id).not.toBe(first.id);
    const { attemptId } = unwrap(await fixture.confirm(paymentId, first.id, await signOption(first, buyer)));
    await fixture.verify(attemptId ?? "");
    await fixture.relay();
    await fixture.watch();
    expect((await fixture.settlementOf(paymentId)).amount).toBe(9_500_000n);
  });

  test("of two quotes for the same amount the confirmed one applies, otherwise the newer one", async () => {
    const fixture = await makeMerchant([assets.push]);
    const run = async (confirms: boolean) => {
      await setFeePoints(fixture, 500);
      const buyer = await makePusher();
      const paymentId = await fixture.create(1_000n);
      const first = await offerOne(fixture, paymentId, buyer);
      await setFeePoints(fixture, 1_000);
      // The block has the second quote's time in whole seconds, which is before the quote.
      fixture.clock.advance(5_000);
      const goOn = fixture.clock.stop();
      const timestamp = BigInt(Math.floor(fixture.clock.now().getTime() / 1_000));
      await offerOne(fixture, paymentId, buyer);
      goOn();
      await chain.client.setNextBlockTimestamp({ timestamp });
      const results = await signOption(first, buyer, chain);
      if (confirms) unwrap(await fixture.confirm(paymentId, first.id, results));
      await fixture.watch();
      // A late confirm of either quote makes no attempt.
      expect(await fixture.confirm(paymentId, first.id, results)).toEqual({ ok: true, value: { attemptId: null } });
      return (await fixture.settlementOf(paymentId)).amount;
    };
    expect(await run(true)).toBe(9_500_000n);
    expect(await run(false)).toBe(9_000_000n);
  });

  test("money that moves long after its quote has expired becomes a late exception", async () => {
    const fixture = await makeMerchant([assets.push]);
    await setPrice(120n);
    const buyer = await makePusher();
    const paymentId = await createEuroPayment(fixture, {
      expiresAt: new Date(fixture.deps.now().getTime() + 2 * HOUR_MS),
    });
    const option = await offerOne(fixture, paymentId, buyer);
    fixture.clock.advance(PAST_QUOTE_MS + 10 * 60_000);
    // A fork's clock can be minutes behind.
    const timestamp = BigInt(Math.floor(fixture.clock.now().getTime() / 1_000) + 60);
    await chain.client.setNextBlockTimestamp({ timestamp });
    await setPrice(150n);
    await offerOne(fixture, paymentId, buyer);
    await signOption(option, buyer, chain);
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("requires_action");
    const exception = (await listExceptions(fixture.deps, 10)).at(-1);
    expect(exception).toMatchObject({ kind: "late", paymentId, amount: 12n * UNIT });
  });
});

test("the cleanup deletes replaced quotes a day after they expire, except signed ones, the newest, and those the watcher may still need", async () => {
  const fixture = await makeMerchant([assets.usdc]);
  const buyer = await fundBuyer(chain);
  const paymentId = await createEuroPayment(fixture, { expiresAt: new Date(fixture.deps.now().getTime() + HOUR_MS) });
  const ids: string[] = [];
  let attemptId = "";
  for (const cents of [120n, 121n, 122n, 123n]) {
    if (ids.length > 0) fixture.clock.advance(PAST_QUOTE_MS);
    await setPrice(cents);
    const option = await offerOne(fixture, paymentId, buyer);
    ids.push(option.id);
    if (ids.length !== 2) continue;
    const confirmed = unwrap(await fixture.confirm(paymentId, option.id, await signOption(option, buyer)));
    attemptId = confirmed.attemptId ?? "";
  }
  await fixture.verify(attemptId);
  const [, signed, , newest] = ids;
  expect((await idsOf(fixture, paymentId)).toSorted()).toEqual(ids.toSorted());
  await fixture.watch();
  const readUpTo = (at: Date) => fixture.db.updateTable("chain_cursor").set({ chain_time: at }).execute();
  await readUpTo(new Date(fixture.deps.now().getTime() - HOUR_MS));
  fixture.clock.advance(23 * HOUR_MS);
  expect(await cleanUp(fixture.deps)).toMatchObject({ quotes: 0 });
  fixture.clock.advance(2 * HOUR_MS);
  expect(await cleanUp(fixture.deps)).toMatchObject({ quotes: 0 });
  await readUpTo(fixture.deps.now());
  expect(await cleanUp(fixture.deps)).toMatchObject({ quotes: 2 });
  expect((await idsOf(fixture, paymentId)).toSorted()).toEqual([signed, newest].toSorted());
});

test("a replaced quote whose chain was read two days late is deleted by the cleanup of the days before", async () => {
  const fixture = await makeMerchant([assets.usdc]);
  const buyer = await fundBuyer(chain);
  const paymentId = await createEuroPayment(fixture, { expiresAt: new Date(fixture.deps.now().getTime() + HOUR_MS) });
  await setPrice(120n);
  await offerOne(fixture, paymentId, buyer);
  fixture.clock.advance(PAST_QUOTE_MS);
  await setPrice(121n);
  const newest = await offerOne(fixture, paymentId, buyer);
  await fixture.watch();
  const readUpTo = (at: Date) => fixture.db.updateTable("chain_cursor").set({ chain_time: at }).execute();
  await readUpTo(new Date(fixture.deps.now().getTime() - HOUR_MS));
  fixture.clock.advance(49 * HOUR_MS);
  expect(await deleteLateQuotes(fixture.deps, 2)).toBe(0);
  await readUpTo(fixture.deps.now());
  // What the frequent cleanup reads does not grow with the quotes of past days.
  expect(await cleanUp(fixture.deps)).toMatchObject({ quotes: 0 });
  expect(await deleteLateQuotes(fixture.deps, 1)).toBe(0);
  expect(await deleteLateQuotes(fixture.deps, 2)).toBe(1);
  expect(await idsOf(fixture, paymentId)).toEqual([newest.id]);
});

type Signed = Awaited<ReturnType<typeof signOption>>;

/** Returns a buyer and a function that moves the money of an option without us. It returns what the wallet returned. */
const kinds = {
  async push() {
    const buyer = await makePusher();
    return { asset: assets.push, buyer, move: (option: OptionView) => signOption(option, buyer, chain) };
  },
  async usdc() {
    const buyer = await fundBuyer(chain);
    const move = async (option: OptionView): Promise<Signed> => {
      const results = await signOption(option, buyer);
      const { message } = JSON.parse(String(walletActions(option)[0]?.params[1])) as { message: Message };
      const { from, to, value, validAfter, validBefore, nonce } = message;
      const signature = String((results[0] as { data: readonly unknown[] }).data[0]) as Hex;
      const vrs = [hexToNumber(slice(signature, 64)), slice(signature, 0, 32), slice(signature, 32, 64)] as const;
      const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, ...vrs] as const;
      await relayByThirdParty(chain, encodeFunctionData({ abi, functionName: "transferWithAuthorization", args }));
      return results;
    };
    return { asset: assets.usdc, buyer, move };
  },
};

/** Moves the money of a quote long after its end, without us, and returns a second quote at the same price. */
async function moveLate(kind: keyof typeof kinds, change: Record<string, unknown> = {}) {
  const { asset, buyer, move } = await kinds[kind]();
  const fixture = await makeMerchant([asset], { change });
  // Another test can have moved the chain's time.
  const { timestamp: chainTime } = await chain.client.getBlock();
  fixture.clock.advance(Math.max(0, Number(chainTime) * 1_000 - fixture.clock.now().getTime()));
  await setPrice(120n);
  const expiresAt = new Date(fixture.deps.now().getTime() + 2 * HOUR_MS);
  const paymentId = await createEuroPayment(fixture, { expiresAt });
  const first = await offerOne(fixture, paymentId, buyer);
  fixture.clock.advance(PAST_QUOTE_MS + 10 * 60_000);
  const timestamp = BigInt(Math.floor(fixture.clock.now().getTime() / 1_000) + 60);
  await chain.client.setNextBlockTimestamp({ timestamp });
  const results = await move(first);
  await fixture.watch();
  await setPrice(120n);
  const second = await offerOne(fixture, paymentId, buyer);
  expect(second.id).not.toBe(first.id);
  const confirm = async () => {
    // An authorization names its quote's end, so the newer quote needs another signature. Its movement is the same.
    const signed = kind === "push" ? results : await signOption(second, buyer);
    const { attemptId } = unwrap(await fixture.confirm(paymentId, second.id, signed));
    await fixture.verify(attemptId ?? "");
    return fixture.verificationResult(attemptId ?? "");
  };
  const stateOf = async () => (await fixture.status(paymentId)).state;
  const late = async () => (await listExceptions(fixture.deps, 10)).filter((one) => one.paymentId === paymentId);
  return { fixture, confirm, stateOf, late };
}

describe.each(["push", "usdc"] as const)("money of kind %s that is booked as late", (kind) => {
  test("a confirm of an equal newer quote is refused, and the payment stays payable", async () => {
    const { fixture, confirm, stateOf, late } = await moveLate(kind);
    expect(await late()).toMatchObject([{ kind: "late", amount: 12n * UNIT }]);
    expect(await confirm()).toMatchObject({ refused: expect.any(String) });
    expect(await stateOf()).toBe("requires_action");
    expect(await fixture.transfers()).toEqual([]);
  });

  test("a payment whose confirm was accepted before the booking expires with its authorization", async () => {
    const { fixture, confirm, stateOf, late } = await moveLate(kind, { finality: { blocks: 4 } });
    expect(await late()).toEqual([]);
    expect(await confirm()).toBe("verified");
    expect(await stateOf()).toBe("processing");
    await mine(chain, 4);
    await fixture.watch();
    expect(await late()).toMatchObject([{ kind: "late", amount: 12n * UNIT }]);
    await fixture.relay();
    expect(await stateOf()).toBe("processing");
    const [{ valid_before: validBefore = null } = {}] = await fixture.transfers();
    await chain.client.setNextBlockTimestamp({ timestamp: BigInt(validBefore ?? 0) });
    await mine(chain, 5);
    await fixture.watch();
    expect(await stateOf()).toBe("expired");
    expect((await fixture.transfers()).map(({ state }) => state)).toEqual(["ended"]);
    expect(await late()).toMatchObject([{ kind: "late", amount: 12n * UNIT }]);
    const reason = "the authorization expired, and its movement is booked as an exception";
    const ends = await fixture.db
      .selectFrom("event")
      .select(["machine", "detail"])
      .where("to_state", "in", ["expired", "ended"])
      .orderBy("machine")
      .execute();
    expect(ends).toEqual([
      { machine: "payment", detail: { reason } },
      { machine: "transfer", detail: { reason } },
    ]);
    expect(fixture.lines.some((line) => line.includes(reason))).toBe(true);
  });
});
