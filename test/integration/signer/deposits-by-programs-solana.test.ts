import { expect, test } from "vitest";
import { listAllDeposits } from "../../../db/queries/deposits.ts";
import { toClaim } from "../../../payments/payouts/request-payouts.ts";
import { parseNetworks } from "../../../runtime/networks/read-networks.ts";
import { type Alter, startAlteringProxy } from "../../support/altering-proxy.ts";
import { payUnsolicited } from "../../support/solana-history.ts";
import { describeSolanaDeployment, makeSolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { startSignerFor } from "../../support/test-signer.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana } from "../../support/test-solana.ts";

const solana = await startTestSolana();

type Shown = {
  transaction: { message: { instructions: { programIdIndex: number }[] } };
  meta: Record<string, unknown>;
};

/** Shows transfers with a memo as made by a program. An endpoint that does not record inner instructions shows none. */
const byProgram =
  ({ isRecorded }: { isRecorded: boolean }): Alter =>
  (method, _params, result) => {
    if (method !== "getTransaction" || result === null || !JSON.stringify(result).includes("Memo")) return result;
    const shown = structuredClone(result) as Shown;
    const [outer] = shown.transaction.message.instructions;
    if (!outer) return result;
    const inner = { ...outer, stackHeight: 2 };
    outer.programIdIndex = 0;
    shown.meta["innerInstructions"] = isRecorded ? [{ index: 0, instructions: [inner] }] : null;
    return shown;
  };

test("the signer verifies a deposit through a program although the first endpoint records no inner instructions", async () => {
  const [first, second] = [
    await startAlteringProxy({ target: solana.url }),
    await startAlteringProxy({ target: solana.url }),
  ];
  const keys = await makeSolanaKeys(solana);
  const rpcUrls = [first.url, second.url];
  const networks = parseNetworks(await describeSolanaDeployment(solana, keys, { rpcUrls }));
  const { SOLANA_TREASURY_KEY = "" } = keys.env;
  const { signer } = await startSignerFor(networks, { SOLANA_TREASURY_KEY });
  const fixture = await makeSolanaMerchantFixture(solana, { keys, signer, rpcUrls });
  await fixture.readHistory();
  first.alter(byProgram({ isRecorded: false }));
  second.alter(byProgram({ isRecorded: true }));
  const paymentId = await payUnsolicited(solana, fixture, await fundSolanaBuyer(solana));
  await fixture.watchUntilState(paymentId, "succeeded");
  const claims = (await listAllDeposits(fixture.db, { after: "", limit: 100 })).map(toClaim);
  expect(await signer.claimDeposits(claims)).toEqual([{ ok: true }]);
});
