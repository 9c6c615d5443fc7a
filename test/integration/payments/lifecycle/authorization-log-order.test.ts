import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { checkChain } from "../../../../chains/open-chains.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { mine, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { deployTestContract } from "../../../support/test-contracts.ts";
import { startTestSigner } from "../../../support/test-signer.ts";
import { mintTestToken, testTokenBalance } from "../../../support/token-kinds.ts";

const chain = await startChain();

test.each([
  ["after the transfer", "AfterToken"],
  ["before the transfer, with another log in between", "BetweenToken"],
  ["before the transfer, with the issuer's fee in between", "TitheToken"],
])(
  "payments and payouts of an EIP-3009 token that emits AuthorizationUsed %s are confirmed",
  async (_where, contract) => {
    const asset = `${chain.id}/erc20:${await deployTestContract(chain.client, "Authorized", contract)}`;
    const entry = {
      asset,
      symbol: "AUTH",
      name: "Authorized Token",
      decimals: 6,
      peg: "iso4217/USD",
      kind: "eip3009",
      domain: { name: "Authorized Token", version: "1" },
      bytesSignatures: false,
    };
    const change = { assets: [entry] };
    const { signer } = await startTestSigner(chain, { change });
    const fixture = await makeMerchantFixture(chain, { assets: [asset], change, signer });
    await checkChain(fixture.deps.chains, chain.id);
    const buyers = [newKey(), newKey()].map(({ privateKey }) => privateKeyToAccount(privateKey));
    for (const { address } of buyers) await mintTestToken(chain, asset, address);
    // The first buyer pays twice in the same transaction.
    const [one, other] = buyers;
    if (!one || !other) throw new Error("there are no buyers");
    const ids: string[] = [];
    for (const [buyer, cents] of [
      [one, 100n],
      [one, 200n],
      [other, 100n],
    ] as const) {
      const id = await fixture.create(cents);
      await fixture.verify(await fixture.attempt(id, buyer));
      ids.push(id);
    }
    await fixture.relay();
    await fixture.watch();
    for (const id of ids) expect(await fixture.status(id)).toMatchObject({ state: "succeeded" });
    expect(await fixture.db.selectFrom("transaction").select("hash").execute()).toHaveLength(1);

    // The treasury bears the issuer's fee on payouts.
    await mintTestToken(chain, asset, chain.keys.treasury.address);
    await fixture.watch();
    for (const id of ids) expect(await fixture.settle((await fixture.settlementOf(id)).id)).toEqual(["begun"]);
    await fixture.relay();
    await fixture.watch();
    await mine(chain);
    await fixture.watch();
    for (const id of ids) expect((await fixture.settlementOf(id)).state).toBe("paid");
    expect(await testTokenBalance(chain, asset, fixture.destination)).toBe(4_000_000n);
  },
);
