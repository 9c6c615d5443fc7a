import type { Hex } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { encodeTransfer, hashAuthorization } from "../../../chains/evm/eip3009.ts";
import { PAYOUT_VALID_BEFORE } from "../../../chains/evm/evm-payouts.ts";
import { deriveNonce, paymentKey } from "../../../chains/natural-key.ts";
import { getEvmChain } from "../../../chains/open-chains.ts";
import { newKey } from "../../../local/networks-document.ts";
import { claimAllDeposits } from "../../../payments/payouts/claim-all-deposits.ts";
import { rebuildPayouts } from "../../../signer/rebuild.ts";
import { fundBuyer, sendUsdc, startChain, type TestChain, usdcBalance } from "../../support/evm-chain.ts";
import { execute } from "../../support/execute-sql.ts";
import { type MerchantFixture, makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { signUnsent } from "../../support/sign-unsent.ts";
import { startTestSigner } from "../../support/test-signer.ts";

type TestSigner = Awaited<ReturnType<typeof startTestSigner>>;
type Options = Partial<Parameters<typeof rebuildPayouts>[1]>;

/** Sends everything that a treasury holds. Returns the transfer's place. */
async function empty(chain: TestChain, from: PrivateKeyAccount, to: Hex): Promise<string> {
  const hash = await sendUsdc(chain, from, to, await usdcBalance(chain, from.address));
  const { logs } = await chain.client.getTransactionReceipt({ hash });
  return `${hash}/${logs[0]?.logIndex}`;
}

/** Starts a shop whose treasury is replaced after the first payments, and whose signer then loses its store. */
async function startRotatedShop(before: (fixture: MerchantFixture, chain: TestChain) => Promise<void>) {
  const chain = await startChain();
  const key = newKey();
  const change = { treasury: { address: key.address, key: { env: "PRESENT_TREASURY_KEY" } } };
  const rotated = {
    ...chain,
    keys: { ...chain.keys, env: { ...chain.keys.env, PRESENT_TREASURY_KEY: key.privateKey } },
  };
  const former = privateKeyToAccount(chain.keys.treasury.privateKey);
  const present = privateKeyToAccount(key.privateKey);
  const first = await makeMerchantFixture(chain, { signer: (await startTestSigner(chain)).signer });
  await before(first, chain);
  const accepted = new Set([await empty(chain, former, present.address)]);
  const { databaseUrl, clock } = first;
  const { signer } = await startTestSigner(rotated, { change });
  const second = await makeMerchantFixture(rotated, { databaseUrl, clock, signer, change, merchant: first });
  const begin = () => startTestSigner(rotated, { change });
  const rebuild = ({ deps }: TestSigner, options: Options) =>
    rebuildPayouts(deps, {
      former: new Map(),
      from: new Map([[chain.id, Number(chain.since)]]),
      accepted,
      left: new Map(),
      ...options,
    });
  return { chain, former, present, first, second, accepted, begin, rebuild };
}

/** Makes a payment and pays it out. Returns the settlement's number. */
async function payOut(fixture: MerchantFixture, chain: TestChain, cents: bigint): Promise<number> {
  const { id, number } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), cents));
  await fixture.settle(id);
  await fixture.relay();
  await fixture.watch();
  return number;
}

test("a store that is lost after a rotation is rebuilt with the deposits and payouts of the former treasury", async () => {
  let made = 0;
  let kept: Hex = "0x";
  const shop = await startRotatedShop(async (fixture, chain) => {
    made = await payOut(fixture, chain, 300n);
    await fixture.pay(await fundBuyer(chain), 200n);
    kept = (await signUnsent(fixture, await fundBuyer(chain), 100n)).call;
  });
  const { chain, former, present, first, second, accepted, begin, rebuild } = shop;
  await second.pay(await fundBuyer(chain), 400n);
  const named = { former: new Map([[chain.id, [former.address]]]) };
  const rebuilt = await begin();
  await expect(rebuild(rebuilt, {})).rejects.toThrow("name each treasury that");
  expect(rebuilt.store.prepare("select * from retired_treasury").all()).toEqual([]);
  await expect(rebuild(rebuilt, named)).rejects.toThrow("the store has no deposits");
  expect(await claimAllDeposits({ db: second.db, signer: rebuilt.signer })).toEqual({ verified: 4, refused: {} });
  const holds = (account: PrivateKeyAccount, amount: bigint) => ({
    chain: chain.id,
    treasury: account.address.toLowerCase(),
    asset: chain.asset,
    amount,
  });
  // The former treasury was named before, and needs no second naming.
  expect(await rebuild(rebuilt, {})).toEqual({ recorded: 0, unattributed: [], held: [holds(present, 7_000_000n)] });
  await empty(chain, present, newKey().address).then((place) => accepted.add(place));
  // Money that comes to the former treasury can still be taken with its signature.
  await sendUsdc(chain, await fundBuyer(chain), former.address, 1_000_000n);
  expect(await rebuild(rebuilt, {})).toEqual({ recorded: 0, unattributed: [], held: [holds(former, 1_000_000n)] });
  const attack = { to: chain.contracts.token, data: kept, gas: 200_000n };
  await chain.client.waitForTransactionReceipt({ hash: await chain.client.sendTransaction(attack) });
  expect(await rebuild(rebuilt, {})).toEqual({ recorded: 4, unattributed: [], held: [] });

  const request = { merchantId: second.merchantId, asset: chain.asset, receiver: first.destination, deposits: [] };
  const ask = async (number: number, amount: bigint) =>
    (await rebuilt.signer.signPayouts([{ kind: "settlement", ...request, number, amount }]))[0];
  expect(await ask(77, 1n)).toMatchObject({ reason: "treasury_retired" });
  for (const treasury of [former.address.toLowerCase(), newKey().address.toLowerCase()]) {
    Object.assign(getEvmChain(rebuilt.deps.chains, chain.id), { treasury });
    const refusals = treasury === former.address.toLowerCase() ? Array(3).fill("treasury_retired") : undefined;
    const asked = [await ask(made, 3_000_000n), await ask(78, 6_000_001n), await ask(79, 6_000_000n)];
    expect(asked.map((one) => (one?.ok ? "signed" : one?.reason))).toEqual(
      refusals ?? ["treasury_changed", "funds_short", "signed"],
    );
  }
});

test.each([
  { name: "the last settlement of all treasuries names the merchant's destination", isAttacked: false },
  { name: "a kept signature for an account that the merchant has replaced restores no destination", isAttacked: true },
])("$name", async ({ isAttacked }) => {
  let kept: Hex = "0x";
  const { chain, former, present, first, second, accepted, begin, rebuild } = await startRotatedShop(
    async (fixture, chain) => {
      await payOut(fixture, chain, 300n);
      kept = (await signUnsent(fixture, await fundBuyer(chain), 100n)).call;
    },
  );
  const replaced = newKey().address;
  await execute(second.databaseUrl, `update settlement_destination set destination = '${chain.id}:${replaced}'`);
  await payOut(second, chain, 400n);
  await second.pay(await fundBuyer(chain), 100n);
  const rebuilt = await begin();
  const named = { former: new Map([[chain.id, [former.address]]]) };
  await expect(rebuild(rebuilt, named)).rejects.toThrow("no deposits");
  await claimAllDeposits({ db: second.db, signer: rebuilt.signer });
  await empty(chain, present, newKey().address).then((place) => accepted.add(place));
  if (isAttacked) {
    await sendUsdc(chain, await fundBuyer(chain), former.address, 1_000_000n);
    const attack = { to: chain.contracts.token, data: kept, gas: 200_000n };
    await chain.client.waitForTransactionReceipt({ hash: await chain.client.sendTransaction(attack) });
  }
  expect(await rebuild(rebuilt, {})).toEqual({ recorded: isAttacked ? 5 : 4, unattributed: [], held: [] });
  await expect(rebuild(rebuilt, {})).rejects.toThrow("has ended");

  Object.assign(getEvmChain(rebuilt.deps.chains, chain.id), { treasury: newKey().address.toLowerCase() });
  const asked = { kind: "settlement", merchantId: second.merchantId, asset: chain.asset } as const;
  const ask = async (receiver: Hex) =>
    (await rebuilt.signer.signPayouts([{ ...asked, receiver, number: 77, amount: 1n, deposits: [] }]))[0];
  expect(await ask(first.destination)).toMatchObject({ ok: false, reason: "destination_waiting" });
  expect(await ask(replaced)).toMatchObject(isAttacked ? { ok: false, reason: "destination_waiting" } : { ok: true });
});

test("deposits into a former treasury that the operator does not name stay unverified, and the refusal says why", async () => {
  const { chain, former, second, begin, rebuild } = await startRotatedShop(async (fixture, chain) => {
    await fixture.pay(await fundBuyer(chain), 200n);
  });
  await second.pay(await fundBuyer(chain), 400n);
  const rebuilt = await begin();
  await expect(rebuild(rebuilt, { former: new Map([[chain.id, []]]) })).rejects.toThrow("has no deposits");
  const claimed = await claimAllDeposits({ db: second.db, signer: rebuilt.signer });
  expect(claimed).toEqual({ verified: 1, refused: { treasury_unknown: 1 } });
  expect(rebuilt.lines.join("")).toContain("--former");
  // While the rebuild is unfinished the operator can still name it.
  const typo = { former: new Map([[chain.id, [newKey().address]]]) };
  await expect(rebuild(await begin(), { former: new Map([[chain.id, ["0x12"]]]) })).rejects.toThrow("20 bytes");
  await expect(rebuild(rebuilt, { former: new Map([[chain.id, [former.address]]]) })).resolves.toMatchObject({
    held: [{ amount: 6_000_000n }],
  });
  expect(await claimAllDeposits({ db: second.db, signer: rebuilt.signer })).toEqual({ verified: 2, refused: {} });
  await expect(rebuild(rebuilt, typo)).rejects.toThrow("no transfer of the former treasury");
});

test("deposits into the treasury that follows are not verified before the rebuild ends, so that it can end", async () => {
  const { chain, former, present, second, begin, rebuild } = await startRotatedShop(async (fixture, chain) => {
    await fixture.pay(await fundBuyer(chain), 200n);
  });
  await second.pay(await fundBuyer(chain), 400n);
  const rebuilt = await begin();
  const use = ({ address }: PrivateKeyAccount) =>
    Object.assign(getEvmChain(rebuilt.deps.chains, chain.id), { treasury: address.toLowerCase() });
  use(former);
  const named = { former: new Map([[chain.id, []]]) };
  await expect(rebuild(rebuilt, named)).rejects.toThrow("has no deposits");
  // The operator starts the signer with the networks file of the treasury that follows.
  use(present);
  const claim = () => claimAllDeposits({ db: second.db, signer: rebuilt.signer });
  expect(await claim()).toEqual({ verified: 1, refused: { treasury_unknown: 1 } });
  use(former);
  expect(await rebuild(rebuilt, named)).toEqual({ recorded: 1, unattributed: [], held: [] });
  use(present);
  expect(await claim()).toEqual({ verified: 2, refused: {} });
});

test("a thief of the database can make no account of theirs count as a former treasury", async () => {
  const { chain, second, begin, rebuild } = await startRotatedShop(async (fixture, chain) => {
    await fixture.pay(await fundBuyer(chain), 200n);
  });
  const rebuilt = await begin();
  const { merchantId } = second;
  const paymentId = await second.create(500n);
  const thief = await fundBuyer(chain);
  const opened = getEvmChain(rebuilt.deps.chains, chain.id);
  const token = opened.tokens.get(chain.asset);
  if (!token?.separator) throw new Error("the token has no domain");
  // The nonce of a payment can be derived from the database, and the thief pays themselves with it.
  const authorization = {
    token: token.token,
    from: thief.address,
    to: newKey().address,
    value: 5_000_000n,
    validBefore: PAYOUT_VALID_BEFORE,
    nonce: deriveNonce(rebuilt.deps.deployment, paymentKey({ merchantId, paymentId })),
  };
  const data = encodeTransfer(
    authorization,
    await thief.sign({ hash: hashAuthorization(token.separator, authorization) }),
  );
  const hash = await chain.client.sendTransaction({ to: token.token, data, gas: 200_000n });
  const { logs } = await chain.client.waitForTransactionReceipt({ hash });
  const logIndex =
    logs.find(({ topics }) => topics.length === 3 && topics[2]?.endsWith(authorization.to.slice(2).toLowerCase()))
      ?.logIndex ?? -1;
  const claim = { asset: chain.asset, merchantId, paymentId, txHash: hash, logIndex };
  expect(await rebuilt.signer.claimDeposits([claim])).toMatchObject([{ ok: false, reason: "deposit_not_found" }]);
  await expect(rebuild(rebuilt, { former: new Map([[chain.id, []]]) })).rejects.toThrow("has no deposits");
  expect(await rebuilt.signer.claimDeposits([claim])).toMatchObject([{ ok: false, reason: "treasury_unknown" }]);
  expect(rebuilt.store.prepare("select * from deposit").all()).toEqual([]);
});

test("money that goes from one treasury to another and on while the histories are read is not overlooked", async () => {
  const { chain, former, present, second, begin, rebuild, accepted } = await startRotatedShop(
    async (fixture, chain) => {
      await fixture.pay(await fundBuyer(chain), 200n);
    },
  );
  const rebuilt = await begin();
  await expect(rebuild(rebuilt, { former: new Map([[chain.id, [former.address]]]) })).rejects.toThrow("no deposits");
  await claimAllDeposits({ db: second.db, signer: rebuilt.signer });
  await empty(chain, present, newKey().address).then((place) => accepted.add(place));
  await sendUsdc(chain, await fundBuyer(chain), former.address, 1_000_000n);
  // The present treasury is read first. Lost signatures then move the former one's money through it.
  const opened = getEvmChain(rebuilt.deps.chains, chain.id);
  const { rpc } = opened;
  let moved = false;
  const moving = async (request: { method: string }) => {
    const answer = await rpc(request as Parameters<typeof rpc>[0]);
    if (!moved && request.method === "eth_getLogs") {
      moved = true;
      await sendUsdc(chain, former, present.address, 1_000_000n);
      await sendUsdc(chain, present, second.destination, 1_000_000n);
    }
    return answer;
  };
  Object.assign(opened, { rpc: moving });
  expect(await rebuild(rebuilt, {}).catch((error: Error) => error.message)).toEqual(
    expect.stringContaining("its history sums to 1000000"),
  );
  expect(moved).toBe(true);
  expect(rebuilt.payouts()).toEqual([]);
});
