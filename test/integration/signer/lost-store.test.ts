import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { correctLedger } from "../../../payments/accounting/corrections.ts";
import { reconcileChain } from "../../../payments/accounting/reconcile-chain.ts";
import { bookException, listExceptions } from "../../../payments/accounting/resolve-exceptions.ts";
import { allEntries } from "../../support/audited-changes.ts";
import { fundBuyer, networksFileFor, sendUsdc, startChain, transfersTo, usdcBalance } from "../../support/evm-chain.ts";
import { startLosableSigner } from "../../support/losable-signer.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { signUnsent } from "../../support/sign-unsent.ts";
import { testActor } from "../../support/test-actor.ts";

/** Starts a shop whose signer is a process, with a networks file for its treasury and one for the treasury that follows. */
async function startShop() {
  const chain = await startChain();
  const next = newKey();
  const change = { treasury: { address: next.address, key: { env: "NEXT_TREASURY_KEY" } } };
  const env = { ...chain.keys.env, NEXT_TREASURY_KEY: next.privateKey };
  const signer = await startLosableSigner({
    networks: { lost: await networksFileFor(chain), next: await networksFileFor(chain, { change }) },
    env,
    assets: [chain.asset],
    rebuildArgs: ["--from", `${chain.id}=${chain.since}`, "--former", `${chain.id}=none`],
  });
  const fixture = await makeMerchantFixture(chain, { signer: signer.connect() });
  const { databaseUrl, clock } = fixture;
  /** Returns the workers of the treasury that follows, whose signer runs. */
  const follow = async () => {
    await signer.start("next");
    const given = { databaseUrl, clock, signer: signer.connect(), change, merchant: fixture };
    return makeMerchantFixture({ ...chain, keys: { ...chain.keys, env } }, given);
  };
  const attack = async (data: `0x${string}`) => {
    const call = { to: chain.contracts.token, data, gas: 200_000n };
    return (await chain.client.waitForTransactionReceipt({ hash: await chain.client.sendTransaction(call) })).status;
  };
  const lost = privateKeyToAccount(chain.keys.treasury.privateKey);
  return { chain, next, lost, signer, fixture, follow, attack };
}

describe("after the signer's process was killed and has lost its store", () => {
  test("a signed payout that was not sent is made once, although an attacker submits its signature as well", async () => {
    const { chain, next, lost, signer, fixture, follow, attack } = await startShop();
    const { id: made } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 300n));
    await fixture.settle(made);
    await fixture.relay();
    await fixture.watch();
    const { id: due } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 100n));
    const unsent = await signUnsent(fixture, await fundBuyer(chain), 200n);

    expect(await signer.lose()).toMatchObject({
      code: 1,
      output: expect.stringContaining("the store has no deposits"),
    });
    const claimed = await signer.claim(fixture.db, async () =>
      expect(await fixture.settle(due)).toEqual(["rebuild_unfinished"]),
    );
    expect(claimed).toEqual({ verified: 3, refused: {} });
    expect(await signer.rebuild()).toMatchObject({ code: 1, output: expect.stringContaining("holds 3000000 of") });

    const hash = await sendUsdc(chain, lost, next.address, 3_000_000n);
    await fixture.watch();
    const [left] = await listExceptions(fixture.deps, 10);
    unwrap(await bookException(fixture.deps, { actor: testActor, id: left?.id ?? 0, as: "cold", note: "store lost" }));
    expect(await signer.rebuild()).toMatchObject({ code: 1, output: expect.stringContaining("belongs to no payout") });
    const { logs } = await chain.client.getTransactionReceipt({ hash });
    const accept = ["--accept", `${hash}/${logs[0]?.logIndex}`];
    expect(await signer.rebuild(...accept)).toEqual({
      code: 0,
      output: expect.stringContaining("2 payouts recorded"),
    });
    const retired = await signer.start("lost");
    expect(await fixture.settle(due)).toEqual(["treasury_retired"]);
    await retired.kill("SIGTERM");

    const workers = await follow();
    const moved = { debit: "treasury", credit: "cold", asset: chain.asset, amount: 3_000_000n };
    unwrap(
      await correctLedger(workers.deps, { actor: testActor, reference: "LOST-1", ...moved, note: "treasury replaced" }),
    );
    expect(await signer.renew(fixture.databaseUrl)).toMatchObject({ code: 0, result: { renewed: 1, refused: {} } });
    expect(await allEntries(fixture.db)).toContainEqual(expect.objectContaining({ action: "payout.renewed" }));
    await workers.relay();
    await workers.watch();
    expect(await workers.settle(due)).toEqual(["begun"]);
    await workers.relay();
    await workers.watch();

    expect(await attack(unsent.call)).toBe("reverted");
    await workers.watch();
    const paid = await transfersTo(chain, fixture.destination);
    expect(paid.map(({ args }) => args.value)).toEqual([3_000_000n, 2_000_000n, 1_000_000n]);
    expect(await usdcBalance(chain, next.address)).toBe(0n);
    const states = await fixture.db.selectFrom("settlement").select("state").execute();
    expect(states.map(({ state }) => state)).toEqual(["paid", "paid", "paid"]);
    const reconciled = await reconcileChain(workers.deps, { chain: chain.id });
    expect(reconciled.ok && reconciled.value.filter(({ difference }) => difference !== 0n)).toEqual([]);
  });

  test("a payout that an attacker made with its old signature is not made again by the treasury that follows", async () => {
    const { chain, next, lost, signer, fixture, follow, attack } = await startShop();
    const unsent = await signUnsent(fixture, await fundBuyer(chain), 200n);
    await signer.lose();
    await signer.claim(fixture.db);
    expect(await attack(unsent.call)).toBe("success");
    expect(await signer.rebuild()).toEqual({ code: 0, output: expect.stringContaining("1 payouts recorded") });

    const workers = await follow();
    await sendUsdc(chain, await fundBuyer(chain), next.address, 2_000_000n);
    expect(await signer.renew(fixture.databaseUrl)).toMatchObject({
      code: 1,
      result: { renewed: 0, refused: { treasury_changed: 1 } },
    });
    await workers.relay();
    expect(await usdcBalance(chain, fixture.destination)).toBe(2_000_000n);
    expect(await usdcBalance(chain, lost.address)).toBe(0n);
  });
});
