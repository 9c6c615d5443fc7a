import { expect, test } from "vitest";
import { createPayment, pay, waitFinal } from "../../ops/local/wallet.ts";
import { fundBuyer, startChain, transfersTo } from "../support/chain.ts";
import { startFleet } from "../support/fleet.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana, tokenBalance } from "../support/solana.ts";
import { waitFor } from "../support/wait-for.ts";

test("one fleet serves an EVM chain and a Solana side by side: a payment on each, and each is paid out where it was paid", async () => {
  const [chain, solana] = await Promise.all([startChain(), startTestSolana({ slotMs: 100 })]);
  const keys = await makeSolanaKeys(solana);
  const fleet = await startFleet({ chain, solana: { chain: solana, keys } });
  const ids = await Promise.all(
    ["one", "two"].map((referenceId) => createPayment(fleet.shop, { referenceId, cents: "1250" })),
  );
  const [one = "", two = ""] = ids;
  await pay(fleet.shop, one, await fundBuyer(chain), chain.id);
  await pay(fleet.shop, two, await fundSolanaBuyer(solana), solana.id);
  for (const id of ids) expect(await waitFinal(fleet.shop, id, 30_000)).toMatchObject({ status: "succeeded" });
  const arrived = async () => (await tokenBalance(solana, fleet.solanaDestination)) === 12_500_000n;
  await waitFor(arrived, { within: 30_000, what: "the payout on Solana" });
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
  expect(await tokenBalance(solana, keys.treasury.address)).toBe(0n);
});
