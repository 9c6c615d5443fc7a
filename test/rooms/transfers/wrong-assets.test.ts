import { expect, test } from "vitest";
import { checkChain } from "../../../chains/open.ts";
import { networksFor, startChain } from "../../support/chain.ts";
import { makeDeps } from "../../support/deps.ts";

const chain = await startChain();
const usdc = (await networksFor(chain)).chains[0]?.assets[0];
const at = (address: string) => ({ asset: `${chain.id}/erc20:${address.toLowerCase()}` });

test.each([
  ["at whose address there is no code", at(`0x${"99".repeat(20)}`), "does not have 6 decimals"],
  ["that is another contract", at(chain.contracts.multicall), "does not have 6 decimals"],
  ["with other decimals", { decimals: 18 }, "does not have 18 decimals"],
  ["with another domain", { domain: { name: "USD Coin", version: "9" } }, "is not the token's own"],
])("an asset %s stops the start, and is named", async (_what, change, words) => {
  const { deps } = await makeDeps(chain, { change: { assets: [{ ...usdc, ...change }] } });
  const fault = { code: "wrong_contract", transient: false, message: expect.stringContaining(words) };
  await expect(checkChain(deps.chains, chain.id)).rejects.toMatchObject(fault);
});

test("the asset as it is does not", async () => {
  const { deps } = await makeDeps(chain);
  await checkChain(deps.chains, chain.id);
});
