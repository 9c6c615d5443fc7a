import { ComputeBudgetProgram, VersionedTransaction } from "@solana/web3.js";
import { describe, expect, test } from "vitest";
import { encodeBase58 } from "../../../../chains/solana/base58.ts";
import { readBudget } from "../../../../chains/solana/compute-budget.ts";
import { parseTransaction } from "../../../../chains/solana/wire-format.ts";
import { signAsWallet } from "../../../../local/solana-buyer.ts";
import { newSolanaKey } from "../../../../local/solana-client.ts";
import { fundTokens, makeMint } from "../../../../local/spl-tokens.ts";
import { listActions, listOptions } from "../../../../payments/options/list-options.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { makeSolanaMerchantFixture, type SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { drainSol, freeze, thaw } from "../../../support/solana-token-moves.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

const solana = await startTestSolana({ own: true });
const proxy = await startAlteringProxy({ target: solana.url });
const newer = await makeMint(solana.client, {
  program: "token-2022",
  decimals: 9,
  extensions: { metadataPointer: "self" },
});
const unsettled = await makeMint(solana.client);
const fixture = await makeSolanaMerchantFixture(solana, {
  rpcUrls: [proxy.url],
  mints: [newer, unsettled],
  settles: [solana.mint, newer],
});
const rich = await fundSolanaBuyer(solana, 1_000_000n);
const assetOf = (mint: { address: string }) => `${solana.id}/token:${mint.address}`;
const list = (paymentId: string, accounts: string[], at: SolanaMerchantFixture = fixture) =>
  listOptions(at.deps, { paymentId, mode: at.mode, accounts });
const read = (transaction: string) => {
  const parsed = parseTransaction(Buffer.from(transaction, "base64"));
  if ("error" in parsed) throw new Error(parsed.error);
  return parsed;
};
/** Creates a payment and returns its option and a function that fetches the transaction to sign. */
async function begin(at: SolanaMerchantFixture = fixture, buyer = rich) {
  const paymentId = await at.create();
  const [option] = await at.offer(paymentId, buyer);
  if (!option) throw new Error("there is no way to pay");
  return { paymentId, option, fetch: () => at.fetchTransaction(paymentId, option.id) };
}

describe("options on Solana", () => {
  test("an account gets one option for each settled token of either program that it holds enough of", async () => {
    const buyer = await fundSolanaBuyer(solana);
    for (const mint of [newer, unsettled]) await fundTokens(solana.client, mint, [buyer.address], 1_000_000_000n);
    const options = await fixture.offer(await fixture.create(100n), buyer);
    expect(options.map(({ amount }) => [amount.unit, amount.value])).toEqual([
      [`caip19/${assetOf(solana.mint)}`, 1_000_000n],
      [`caip19/${assetOf(newer)}`, 1_000_000_000n],
    ]);
    expect(await fixture.offer(await fixture.create(101n), buyer)).toHaveLength(1);
  });

  test.each([solana.mint, newer])("a buyer can spend the full balance of a token (%#)", async (mint) => {
    const buyer = newSolanaKey();
    const amount = 10n ** BigInt(mint.decimals);
    await fundTokens(solana.client, mint, [buyer.address], amount);
    const before = await tokenBalance(solana, fixture.keys.treasury.address, mint);
    await fixture.pay(buyer);
    expect(await tokenBalance(solana, buyer.address, mint)).toBe(0n);
    expect((await tokenBalance(solana, fixture.keys.treasury.address, mint)) - before).toBe(amount);
  });

  test("a missing, frozen or underfunded account gets no options", async () => {
    const [short, frozen] = [await fundSolanaBuyer(solana, 999_999n), await fundSolanaBuyer(solana)];
    await freeze({ solana, owner: frozen.address });
    const paymentId = await fixture.create();
    expect(await fixture.offer(paymentId, newSolanaKey(), short, frozen)).toEqual([]);
    await thaw({ solana, owner: frozen.address });
    expect(await fixture.offer(paymentId, newSolanaKey(), short, frozen)).toHaveLength(1);
  });

  test("the service's own accounts get no options, including the treasury's token account", async () => {
    const { treasury, lanes } = fixture.keys;
    const own = [
      treasury.address,
      lanes[0]?.address ?? "",
      [...fixture.chain.tokens.values()][0]?.treasuryAccount ?? "",
    ];
    await fundTokens(solana.client, solana.mint, own, 5_000_000n);
    const accounts = own.map((address) => `${solana.id}:${address}`);
    expect(await list(await fixture.create(), accounts)).toMatchObject({ ok: true, value: { options: [] } });
  });

  test.each([
    ["not base58", "0OIl".repeat(9)],
    ["an EVM address", `0x${"ab".repeat(20)}`],
    ["31 bytes long", encodeBase58(new Uint8Array(31).fill(7))],
    ["longer than an address", rich.address + rich.address],
  ])("an address that is %s is skipped beside another one, and refused alone", async (_, address) => {
    const id = await fixture.create();
    const account = `${solana.id}:${rich.address}`;
    expect(await list(id, [`${solana.id}:${address}`, account])).toMatchObject({
      ok: true,
      value: { options: [{ account }] },
    });
    expect(await list(id, [`${solana.id}:${address}`])).toMatchObject({ ok: false, code: "invalid_params" });
  });

  test("an amount that exceeds a token's 64 bits gets no option in that token", async () => {
    const whale = newSolanaKey();
    await fundTokens(solana.client, solana.mint, [whale.address], 2n ** 64n - 1n - 10n ** 15n);
    // With 9 decimals this amount exceeds 64 bits, with 6 it does not.
    expect(await fixture.offer(await fixture.create(10n ** 13n), whale)).toHaveLength(1);
    for (const cents of [2n ** 64n, 10n ** 60n])
      await expect(fixture.create(cents)).rejects.toThrow("amount.value: exceeds what any asset can pay");
  });

  test("Solana and EVM options are listed together in the wallet's order", async () => {
    const evm = await startChain();
    const both = await makeSolanaMerchantFixture(solana, { evm });
    const other = await fundBuyer(evm);
    const accounts = [`${evm.id}:${other.address}`, `${solana.id}:${rich.address}`, "cosmos:cosmoshub-3:cosmos1abc"];
    for (const inOrder of [accounts, accounts.toReversed()]) {
      const { options } = unwrap(await list(await both.create(), inOrder, both));
      expect(options.map(({ account }) => account)).toEqual(inOrder.filter((one) => !one.startsWith("cosmos")));
    }
    await solana.knobs.fail(["getMultipleAccounts"], 6, "error");
    const remaining = unwrap(await list(await both.create(), accounts, both)).options;
    await solana.knobs.fail(["getMultipleAccounts"], 0, "error");
    expect(remaining.map(({ account }) => account)).toEqual(accounts.slice(0, 1));
  });
});

describe("an option's transaction", () => {
  test("an option's transaction is fetched with or without the build action's data and is one wallet call", async () => {
    const { paymentId, option } = await begin();
    const [action] = option.actions;
    if (!action || !("build" in action)) throw new Error("there is nothing to build");
    for (const data of ["", action.build]) {
      const { actions } = unwrap(
        await listActions(fixture.deps, { paymentId, mode: "live", optionId: option.id, data }),
      );
      expect(actions).toEqual([
        { chain: solana.id, method: "solana_signTransaction", params: [{ transaction: expect.any(String) }] },
      ]);
    }
    const strange = await listActions(fixture.deps, {
      paymentId,
      mode: "live",
      optionId: option.id,
      data: "opt_other",
    });
    expect(strange).toMatchObject({ ok: false, code: "invalid_params" });
  });

  test("an option's transaction is unsigned, names the relayer as fee payer and parses with web3.js", async () => {
    const { fetch } = await begin();
    const bytes = Buffer.from(await fetch(), "base64");
    const { message, signatures } = VersionedTransaction.deserialize(bytes);
    expect(message.staticAccountKeys.slice(0, 2).map(String)).toEqual([fixture.keys.lanes[0]?.address, rich.address]);
    expect(signatures).toEqual([new Uint8Array(64), new Uint8Array(64)]);
  });

  test("every fetch of an option's transaction uses a new blockhash and extends the option", async () => {
    const { paymentId, option, fetch } = await begin();
    const first = read(await fetch()).blockhash;
    fixture.clock.advance(5_000);
    await waitFor(async () => (await solana.client.connection.getLatestBlockhash()).blockhash !== first, {
      within: 20_000,
    });
    const second = read(await fetch()).blockhash;
    expect(second).not.toBe(first);
    const [renewed] = await fixture.offer(paymentId, rich);
    const extended = (renewed?.expiresAt?.getTime() ?? 0) - (option.expiresAt?.getTime() ?? 0);
    expect(extended).toBeGreaterThanOrEqual(5_000);
    // Less than the 150 blocks for which the blockhash is valid.
    const leftMs = (renewed?.expiresAt?.getTime() ?? 0) - fixture.clock.now().getTime();
    expect(leftMs).toBeLessThan(150 * 100);
  });

  test("a transaction signed after the option expired is refused until the option is fetched again", async () => {
    const { paymentId, option, fetch } = await begin();
    const confirm = (signed: string) => fixture.confirm(paymentId, option.id, [{ type: "walletRpc", data: [signed] }]);
    const signed = signAsWallet(await fetch(), rich);
    fixture.clock.advance(13_000);
    expect(await confirm(signed)).toMatchObject({ ok: false, code: "quote_expired" });
    expect(await confirm(signAsWallet(await fetch(), rich))).toMatchObject({ ok: true });
  });

  test("an ended payment's transaction cannot be fetched", async () => {
    const { paymentId, option } = await begin();
    fixture.clock.advance(10 * 60_000);
    const late = await listActions(fixture.deps, { paymentId, mode: "live", optionId: option.id, data: "" });
    expect(late).toMatchObject({ ok: false, code: "payment_expired" });
  });
});

describe("the compute unit price", () => {
  const priceAt = async (fees: number[]) => {
    proxy.alter((method, _params, result) =>
      method === "getRecentPrioritizationFees"
        ? fees.map((prioritizationFee, slot) => ({ slot, prioritizationFee }))
        : result,
    );
    fixture.clock.advance(6_000);
    const parsed = read(await (await begin()).fetch());
    expect(parsed.instructions[0]?.program).toBe(ComputeBudgetProgram.programId.toBase58());
    return readBudget(parsed);
  };

  test("the compute unit price is the 75th percentile of recent prices", async () => {
    expect((await priceAt([1, 40_000, 3, 2])).unitPrice).toBe(40_000n);
    expect((await priceAt([])).unitPrice).toBe(0n);
  });

  test("the compute unit price never exceeds the network's cap", async () => {
    const { units, unitPrice } = await priceAt([10 ** 15]);
    const fee = (BigInt(units) * unitPrice + 999_999n) / 1_000_000n;
    expect(fee).toBeLessThanOrEqual(100_000n);
    expect(fee).toBeGreaterThan(99_000n);
  });
});

describe("the compute unit limit", () => {
  const limitWith = async (unitsConsumed: number, err: string | null = null) => {
    proxy.alter((method, _params, result) =>
      method === "simulateTransaction" ? { context: { slot: 1 }, value: { err, logs: [], unitsConsumed } } : result,
    );
    return readBudget(read(await (await begin()).fetch())).units;
  };

  test("a payment's limit is what a simulation takes, with room for guards and a margin, for ten minutes", async () => {
    fixture.clock.advance(11 * 60_000);
    expect(await limitWith(20_000, "AccountNotFound"), "no simulation").toBe(150_000);
    fixture.clock.advance(11_000);
    expect(await limitWith(20_000)).toBe(88_000);
    expect(await limitWith(30_000)).toBe(88_000);
    fixture.clock.advance(11 * 60_000);
    expect(await limitWith(30_000)).toBe(99_000);
    fixture.clock.advance(11 * 60_000);
    expect(await limitWith(200_000), "never above the highest limit").toBe(150_000);
  });
});

describe("several relayers", () => {
  test("several relayers share the payments, and a relayer without SOL is skipped", async () => {
    const shop = await makeSolanaMerchantFixture(solana, { lanes: 3 });
    const choosePayer = async () => read(await (await begin(shop)).fetch()).feePayer;
    const lanes = shop.keys.lanes.map(({ address }) => address);
    // A hash chooses the relayer, so that it takes more payments now and then until each has been chosen.
    const chosen = new Set<string>();
    for (let count = 0; count < 100 && chosen.size < 3; count += 1) chosen.add(await choosePayer());
    expect([...chosen].toSorted()).toEqual(lanes.toSorted());
    const [, empty] = shop.keys.lanes;
    if (!empty) throw new Error("there is no second relayer");
    await drainSol(solana, empty);
    shop.clock.advance(11_000);
    const others = new Set<string>();
    for (let count = 0; count < 24; count += 1) others.add(await choosePayer());
    expect([...others].toSorted()).toEqual(lanes.filter((one) => one !== empty.address).toSorted());
  });
});

describe("test mode", () => {
  test("a test payment makes no RPC call and succeeds with a transaction on an invalid blockhash", async () => {
    const shop = await makeSolanaMerchantFixture(solana, { mode: "test", rpcUrls: [proxy.url] });
    const calls: string[] = [];
    proxy.alter((method, _params, result) => {
      calls.push(method);
      return result;
    });
    const buyer = newSolanaKey();
    const { paymentId, option, fetch } = await begin(shop, buyer);
    const transaction = await fetch();
    const { blockhash } = read(transaction);
    expect((await solana.client.connection.isBlockhashValid(blockhash, { commitment: "processed" })).value).toBe(false);
    await shop.verify(await shop.attemptWith(paymentId, option.id, signAsWallet(transaction, buyer)));
    expect(await shop.status(paymentId)).toMatchObject({ state: "succeeded", info: { txId: `test:${paymentId}` } });
    expect(calls).toEqual([]);
    expect(await shop.transfers()).toEqual([]);
  });

  test("test mode refuses an amount that exceeds a token's 64 bits", async () => {
    const shop = await makeSolanaMerchantFixture(solana, { mode: "test", databaseUrl: fixture.databaseUrl });
    const most = (2n ** 64n - 1n) / 10_000n;
    expect(await shop.offer(await shop.create(most), rich)).toHaveLength(1);
    await expect(shop.create(most + 1n)).rejects.toThrow("amount.value: exceeds what any asset can pay");
  });

  test("test mode refuses a transaction that its wallet did not sign", async () => {
    const shop = await makeSolanaMerchantFixture(solana, { mode: "test", databaseUrl: fixture.databaseUrl });
    const { paymentId, option, fetch } = await begin(shop, newSolanaKey());
    const attemptId = await shop.attemptWith(paymentId, option.id, await fetch());
    await shop.verify(attemptId);
    expect(await shop.verificationResult(attemptId)).toEqual({ refused: expect.stringContaining("missing") });
    expect((await shop.status(paymentId)).state).toBe("requires_action");
  });
});
