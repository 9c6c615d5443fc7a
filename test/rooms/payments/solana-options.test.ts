import { ComputeBudgetProgram, VersionedTransaction } from "@solana/web3.js";
import { describe, expect, test } from "vitest";
import { readBudget } from "../../../chains/solana/budget.ts";
import { parseTransaction } from "../../../chains/solana/transactions.ts";
import { newSolanaKey } from "../../../ops/local/solana-client.ts";
import { signAsWallet } from "../../../ops/local/solana-wallet.ts";
import { fundTokens, makeMint } from "../../../ops/local/spl.ts";
import { listActions, listOptions } from "../../../payments/options.ts";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { fundBuyer, startChain } from "../../support/chain.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../support/solana.ts";
import { makeSolanaTill, type SolanaTill } from "../../support/solana-till.ts";
import { drainSol, freeze, thaw } from "../../support/solana-tokens.ts";
import { good } from "../../support/till.ts";
import { waitFor } from "../../support/wait-for.ts";

const solana = await startTestSolana();
const proxy = await startAlteringProxy({ target: solana.url });
const newer = await makeMint(solana.client, {
  program: "token-2022",
  decimals: 9,
  extensions: { metadataPointer: "self" },
});
const unsettled = await makeMint(solana.client);
const till = await makeSolanaTill(solana, {
  rpcUrls: [proxy.url],
  mints: [newer, unsettled],
  settles: [solana.mint, newer],
});
const rich = await fundSolanaBuyer(solana, 1_000_000n);
const assetOf = (mint: { address: string }) => `${solana.id}/token:${mint.address}`;
const ask = (paymentId: string, accounts: string[], at: SolanaTill = till) =>
  listOptions(at.deps, { paymentId, mode: at.mode, accounts });
const read = (transaction: string) => {
  const parsed = parseTransaction(Buffer.from(transaction, "base64"));
  if ("fault" in parsed) throw new Error(parsed.fault);
  return parsed;
};
/** The option of a new payment, and the transaction it asks the wallet to sign. */
async function begin(at: SolanaTill = till, buyer = rich) {
  const paymentId = await at.create();
  const [option] = await at.offer(paymentId, buyer);
  if (!option) throw new Error("there is no way to pay");
  return { paymentId, option, fetch: () => at.fetchTransaction(paymentId, option.id) };
}

describe("the ways to pay on Solana", () => {
  test("are one for each settled token of either program that the account holds enough of", async () => {
    const buyer = await fundSolanaBuyer(solana);
    for (const mint of [newer, unsettled]) await fundTokens(solana.client, mint, [buyer.address], 1_000_000_000n);
    const options = await till.offer(await till.create(100n), buyer);
    expect(options.map(({ amount }) => [amount.unit, amount.value])).toEqual([
      [`caip19/${assetOf(solana.mint)}`, 1_000_000n],
      [`caip19/${assetOf(newer)}`, 1_000_000_000n],
    ]);
    expect(await till.offer(await till.create(101n), buyer)).toHaveLength(1);
  });

  test.each([solana.mint, newer])("pay with that token, in full (%#)", async (mint) => {
    const buyer = newSolanaKey();
    const amount = 10n ** BigInt(mint.decimals);
    await fundTokens(solana.client, mint, [buyer.address], amount);
    const before = await tokenBalance(solana, till.keys.treasury.address, mint);
    await till.pay(buyer);
    expect(await tokenBalance(solana, buyer.address, mint)).toBe(0n);
    expect((await tokenBalance(solana, till.keys.treasury.address, mint)) - before).toBe(amount);
  });

  test("are none for an account that is missing, frozen, or short by one", async () => {
    const [short, frozen] = [await fundSolanaBuyer(solana, 999_999n), await fundSolanaBuyer(solana)];
    await freeze({ solana, owner: frozen.address });
    const paymentId = await till.create();
    expect(await till.offer(paymentId, newSolanaKey(), short, frozen)).toEqual([]);
    await thaw({ solana, owner: frozen.address });
    expect(await till.offer(paymentId, newSolanaKey(), short, frozen)).toHaveLength(1);
  });

  test("are none for accounts of our own, the treasury's token account among them", async () => {
    const { treasury, lanes } = till.keys;
    const own = [treasury.address, lanes[0]?.address ?? "", [...till.chain.tokens.values()][0]?.treasuryAccount ?? ""];
    await fundTokens(solana.client, solana.mint, own, 5_000_000n);
    const accounts = own.map((address) => `${solana.id}:${address}`);
    expect(await ask(await till.create(), accounts)).toMatchObject({ ok: true, value: { options: [] } });
  });

  test.each([
    ["not base58", "0OIl".repeat(9)],
    ["of EVM", `0x${"ab".repeat(20)}`],
    ["31 bytes long", rich.address.slice(0, 42)],
    ["longer than an address", rich.address + rich.address],
  ])("are refused for an address that is %s, and the answer names the account", async (_, address) => {
    const refusal = await ask(await till.create(), [`${solana.id}:${rich.address}`, `${solana.id}:${address}`]);
    expect(refusal).toMatchObject({
      ok: false,
      code: "invalid_params",
      message: expect.stringContaining("accounts.1"),
    });
  });

  test("leave out a token in which the amount is more than it can count", async () => {
    const whale = newSolanaKey();
    await fundTokens(solana.client, solana.mint, [whale.address], 2n ** 64n - 1n - 10n ** 15n);
    // In cents: 9 decimals are beyond 64 bits where 6 are not.
    expect(await till.offer(await till.create(10n ** 13n), whale)).toHaveLength(1);
    for (const cents of [2n ** 64n, 10n ** 60n])
      await expect(till.create(cents)).rejects.toThrow("amount.value: exceeds what any asset can pay");
  });

  test("stand beside those of EVM, in the wallet's own order", async () => {
    const evm = await startChain();
    const both = await makeSolanaTill(solana, { evm });
    const other = await fundBuyer(evm);
    const accounts = [`${evm.id}:${other.address}`, `${solana.id}:${rich.address}`, "cosmos:cosmoshub-3:cosmos1abc"];
    for (const inOrder of [accounts, accounts.toReversed()]) {
      const { options } = good(await ask(await both.create(), inOrder, both));
      expect(options.map(({ account }) => account)).toEqual(inOrder.filter((one) => !one.startsWith("cosmos")));
    }
    await solana.knobs.fail(["getMultipleAccounts"], 6, "error");
    const left = good(await ask(await both.create(), accounts, both)).options;
    await solana.knobs.fail(["getMultipleAccounts"], 0, "error");
    expect(left.map(({ account }) => account)).toEqual(accounts.slice(0, 1));
  });
});

describe("the transaction of an option", () => {
  test("is fetched, with the build action's data or without, and is one wallet call", async () => {
    const { paymentId, option } = await begin();
    const [action] = option.actions;
    if (!action || !("build" in action)) throw new Error("there is nothing to build");
    for (const data of ["", action.build]) {
      const { actions } = good(await listActions(till.deps, { paymentId, mode: "live", optionId: option.id, data }));
      expect(actions).toEqual([
        { chain: solana.id, method: "solana_signTransaction", params: [{ transaction: expect.any(String) }] },
      ]);
    }
    const strange = await listActions(till.deps, { paymentId, mode: "live", optionId: option.id, data: "opt_other" });
    expect(strange).toMatchObject({ ok: false, code: "invalid_params" });
  });

  test("is unsigned, paid for by our relayer, and can be read by the stock library", async () => {
    const { fetch } = await begin();
    const bytes = Buffer.from(await fetch(), "base64");
    const { message, signatures } = VersionedTransaction.deserialize(bytes);
    expect(message.staticAccountKeys.slice(0, 2).map(String)).toEqual([till.keys.lanes[0]?.address, rich.address]);
    expect(signatures).toEqual([new Uint8Array(64), new Uint8Array(64)]);
  });

  test("has a fresh blockhash at every fetch, and the option is good from then on", async () => {
    const { paymentId, option, fetch } = await begin();
    const first = read(await fetch()).blockhash;
    till.clock.advance(5_000);
    await waitFor(async () => (await solana.client.connection.getLatestBlockhash()).blockhash !== first, {
      within: 5_000,
    });
    const second = read(await fetch()).blockhash;
    expect(second).not.toBe(first);
    const [again] = await till.offer(paymentId, rich);
    const extended = (again?.expiresAt?.getTime() ?? 0) - (option.expiresAt?.getTime() ?? 0);
    expect(extended).toBeGreaterThanOrEqual(5_000);
    // Less than the 150 blocks that the blockhash itself is good for.
    const left = (again?.expiresAt?.getTime() ?? 0) - till.clock.now().getTime();
    expect(left).toBeLessThan(150 * 100);
  });

  test("is a stale quote after the option's time, until it is fetched anew", async () => {
    const { paymentId, option, fetch } = await begin();
    const confirm = (signed: string) => till.confirm(paymentId, option.id, [{ type: "walletRpc", data: [signed] }]);
    const signed = signAsWallet(await fetch(), rich);
    till.clock.advance(13_000);
    expect(await confirm(signed)).toMatchObject({ ok: false, code: "quote_expired" });
    expect(await confirm(signAsWallet(await fetch(), rich))).toMatchObject({ ok: true });
  });

  test("cannot be fetched for a payment that waits no more", async () => {
    const { paymentId, option } = await begin();
    till.clock.advance(10 * 60_000);
    const late = await listActions(till.deps, { paymentId, mode: "live", optionId: option.id, data: "" });
    expect(late).toMatchObject({ ok: false, code: "payment_expired" });
  });
});

describe("the price of a compute unit", () => {
  const priceAt = async (fees: number[]) => {
    proxy.alter((method, _params, result) =>
      method === "getRecentPrioritizationFees"
        ? fees.map((prioritizationFee, slot) => ({ slot, prioritizationFee }))
        : result,
    );
    till.clock.advance(6_000);
    const parsed = read(await (await begin()).fetch());
    expect(parsed.instructions[0]?.program).toBe(ComputeBudgetProgram.programId.toBase58());
    return readBudget(parsed);
  };

  test("is what three quarters of the recent ones have paid", async () => {
    expect((await priceAt([1, 40_000, 3, 2])).unitPrice).toBe(40_000n);
    expect((await priceAt([])).unitPrice).toBe(0n);
  });

  test("is never more than the cap of the network, however much others pay", async () => {
    const { units, unitPrice } = await priceAt([10 ** 15]);
    const fee = (BigInt(units) * unitPrice + 999_999n) / 1_000_000n;
    expect(fee).toBeLessThanOrEqual(100_000n);
    expect(fee).toBeGreaterThan(99_000n);
  });
});

describe("several relayers", () => {
  test("share the payments, and one without SOL is passed over", async () => {
    const shop = await makeSolanaTill(solana, { lanes: 3 });
    const payers = async () => {
      const seen = new Set<string>();
      for (let count = 0; count < 24; count += 1) seen.add(read(await (await begin(shop)).fetch()).feePayer);
      return seen;
    };
    const lanes = shop.keys.lanes.map(({ address }) => address);
    expect([...(await payers())].toSorted()).toEqual(lanes.toSorted());
    const [, empty] = shop.keys.lanes;
    if (!empty) throw new Error("there is no second relayer");
    await drainSol(solana, empty);
    shop.clock.advance(11_000);
    expect([...(await payers())].toSorted()).toEqual(lanes.filter((one) => one !== empty.address).toSorted());
  });
});

describe("test mode", () => {
  test("asks no balance, sends nothing, and succeeds with a transaction on an invented blockhash", async () => {
    const shop = await makeSolanaTill(solana, { mode: "test", rpcUrls: [proxy.url] });
    const asked: string[] = [];
    proxy.alter((method, _params, result) => {
      asked.push(method);
      return result;
    });
    const nobody = newSolanaKey();
    const { paymentId, option, fetch } = await begin(shop, nobody);
    const transaction = await fetch();
    const { blockhash } = read(transaction);
    expect((await solana.client.connection.isBlockhashValid(blockhash, { commitment: "processed" })).value).toBe(false);
    await shop.verify(await shop.attemptWith(paymentId, option.id, signAsWallet(transaction, nobody)));
    expect(await shop.status(paymentId)).toMatchObject({ state: "succeeded", info: { txId: `test:${paymentId}` } });
    expect(asked).toEqual([]);
    expect(await shop.transfers()).toEqual([]);
  });

  test("takes no amount that a token cannot count, though no balance is asked", async () => {
    const shop = await makeSolanaTill(solana, { mode: "test", databaseUrl: till.databaseUrl });
    const most = (2n ** 64n - 1n) / 10_000n;
    expect(await shop.offer(await shop.create(most), rich)).toHaveLength(1);
    await expect(shop.create(most + 1n)).rejects.toThrow("amount.value: exceeds what any asset can pay");
  });

  test("refuses what its wallet did not sign", async () => {
    const shop = await makeSolanaTill(solana, { mode: "test", databaseUrl: till.databaseUrl });
    const { paymentId, option, fetch } = await begin(shop, newSolanaKey());
    const attemptId = await shop.attemptWith(paymentId, option.id, await fetch());
    await shop.verify(attemptId);
    expect(await shop.verdict(attemptId)).toEqual({ refused: expect.stringContaining("missing") });
    expect((await shop.status(paymentId)).state).toBe("requires_action");
  });
});
