import { concat, type Hex, keccak256, numberToHex, type PrivateKeyAccount, pad, slice } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { mintUsdc } from "../../../../local/usdc.ts";
import { makeMerchantFixture, signOption, unwrap } from "../../../support/merchant-fixture.ts";
import { delegate, deployFactory, deployWallet, wrapUndeployed } from "../../../support/smart-wallets.ts";
import { mintTestToken, startTokenKinds, tokenOf } from "../../../support/token-kinds.ts";

/**
 * Verification agrees with the chain for every kind of payer: a verified transfer arrives, and a refused transfer would
 * have reverted (lessons: signature passes verify, fails on chain; wallets that are not deployed; delegated keys).
 */
const kinds = await startTokenKinds();
const { chain } = kinds;
const { client } = chain;
const [allowed, unknown] = [await deployFactory(chain), await deployFactory(chain)];
const fixture = await makeMerchantFixture(chain, {
  change: { ...kinds.change, walletFactories: [allowed.address] },
  assets: [kinds.assets.usdc, kinds.assets.permit],
});

/** Storage slot of the test token's allowances, after its name, symbol and balances. */
const ALLOWANCES_SLOT = pad("0x3");
const slotOf = (key: Hex, slot: Hex) => keccak256(concat([pad(key), slot]));

/** A payer: its address, its owner's key, and what it makes of the key's signature. */
type Payer = { address: Hex; key: PrivateKeyAccount; finish: (signature: Hex) => Hex };

const same = (signature: Hex) => signature;
const newOwner = () => privateKeyToAccount(newKey().privateKey);
const withV = (signature: Hex, v: number) => concat([slice(signature, 0, 64), numberToHex(v, { size: 1 })]);
const vOf = (signature: Hex) => Number(slice(signature, 64)) - 27;
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
/** Returns the equivalent signature with a high s. */
const withHighS = (signature: Hex) =>
  concat([
    slice(signature, 0, 32),
    numberToHex(N - BigInt(slice(signature, 32, 64)), { size: 32 }),
    numberToHex(28 - vOf(signature), { size: 1 }),
  ]);

/** Returns the equivalent signature of 64 bytes (ERC-2098), which Permit2 accepts. */
const compact = (signature: Hex) =>
  concat([
    slice(signature, 0, 32),
    numberToHex(BigInt(slice(signature, 32, 64)) | (BigInt(vOf(signature)) << 255n), { size: 32 }),
  ]);
/** An owner whose wallet no payment may deploy, because it is the payer of none. */
const stranger = newOwner().address;
const wrapStrange = (signature: Hex) => wrapUndeployed(allowed, stranger, signature);
const wrapStrangeTwice = (signature: Hex) => wrapStrange(wrapStrange(signature));

const plain = (finish: (signature: Hex) => Hex) => async (): Promise<Payer> => {
  const key = newOwner();
  return { address: key.address.toLowerCase() as Hex, key, finish };
};
const delegated =
  (name: "Delegate" | "SilentDelegate", finish = same) =>
  async (): Promise<Payer> => {
    const payer = await plain(finish)();
    await delegate(chain, payer.key, name);
    return payer;
  };
const deployed =
  (by: "owner" | "stranger", finish = same) =>
  async (): Promise<Payer> => {
    const owner = newOwner();
    const address = await deployWallet(chain, allowed, owner.address);
    return { address, key: by === "owner" ? owner : newOwner(), finish };
  };
const undeployed =
  (factory: typeof allowed, by: "owner" | "stranger", before = same) =>
  async (): Promise<Payer> => {
    const owner = newOwner();
    const finish = (signature: Hex) => wrapUndeployed(factory, owner.address, before(signature));
    return { address: await factory.addressOf(owner.address), key: by === "owner" ? owner : newOwner(), finish };
  };

/** Anyone can send native money to the address of a wallet that is not deployed. */
const withNativeMoney = (make: () => Promise<Payer>) => async (): Promise<Payer> => {
  const payer = await make();
  await client.setBalance({ address: payer.address, value: 1n });
  return payer;
};

type End = "pays" | string;
const cases: [string, () => Promise<Payer>, End | { usdc: End; permit: End }][] = [
  ["by a plain key", plain(same), "pays"],
  ["by a plain key that writes v as 0 or 1", plain((signature) => withV(signature, vOf(signature))), "pays"],
  ["by a plain key with v = 29", plain((signature) => withV(signature, 29)), "last byte"],
  ["by a plain key with a high s", plain(withHighS), "upper half"],
  ["by a plain key with an extra byte", plain((signature) => `${signature}00`), "65 bytes"],
  ["by a delegated key whose code accepts its signature", delegated("Delegate"), "pays"],
  ["by a delegated key whose code accepts no signature", delegated("SilentDelegate"), "would fail"],
  ["by the owner of a deployed wallet", deployed("owner"), "pays"],
  [
    "by a deployed wallet that still wraps its signature as undeployed",
    deployed("owner", (signature) => wrapUndeployed(unknown, stranger, signature)),
    "pays",
  ],
  ["by a deployed wallet that names another wallet of an allowed factory", deployed("owner", wrapStrange), "pays"],
  ["by a delegated key that names another wallet of an allowed factory", delegated("Delegate", wrapStrange), "pays"],
  ["that a deployed wallet wraps twice", deployed("owner", wrapStrangeTwice), "more than once"],
  ["that a delegated key wraps twice", delegated("Delegate", wrapStrangeTwice), "more than once"],
  ["that an undeployed wallet wraps twice", undeployed(allowed, "owner", wrapStrange), "more than once"],
  ["by a plain key that names a wallet of an allowed factory", plain(wrapStrange), "a key of its own"],
  [
    "of 64 bytes by a plain key that names a wallet of an allowed factory",
    plain((signature) => wrapStrange(compact(signature))),
    { usdc: "would fail", permit: "does not deploy" },
  ],
  ["by a third party for a deployed wallet", deployed("stranger"), "would fail"],
  ["by the owner of an undeployed wallet of an allowed factory", undeployed(allowed, "owner"), "pays"],
  [
    "by the owner of an undeployed wallet that holds native money",
    withNativeMoney(undeployed(allowed, "owner")),
    "pays",
  ],
  ["by a third party for an undeployed wallet of an allowed factory", undeployed(allowed, "stranger"), "would fail"],
  [
    "by the owner of an undeployed wallet of a factory that is not allowed",
    undeployed(unknown, "owner"),
    "not allowed",
  ],
];

describe.each(["usdc", "permit"] as const)("with %s,", (name) => {
  const asset = kinds.assets[name];

  /** Funds a payer and, for Permit2, sets the allowance that a wallet would have from before. */
  const prepare = async ({ address }: Payer) => {
    if (name === "usdc") return mintUsdc(client, chain.contracts.token, [address], 1_000_000_000n);
    await mintTestToken(chain, asset, address);
    // Written directly to the token's storage: an undeployed wallet cannot send an approval.
    const index = slotOf(kinds.permit2, slotOf(address, ALLOWANCES_SLOT));
    await client.setStorageAt({ address: tokenOf(asset), index, value: `0x${"ff".repeat(32)}` });
  };

  test.each(cases)("verification agrees with the chain on a signature %s", async (_payer, make, ends) => {
    const end = typeof ends === "string" ? ends : ends[name];
    const payer = await make();
    await prepare(payer);
    const paymentId = await fixture.create();
    const [option] = await fixture.offer(paymentId, payer);
    if (!option) throw new Error("there is no way to pay");
    const [signed] = await signOption(option, payer.key);
    const results = [{ type: "walletRpc" as const, data: [payer.finish(signed?.data[0] as Hex)] }];
    const { attemptId } = unwrap(await fixture.confirm(paymentId, option.id, results));
    await fixture.verify(attemptId ?? "");
    if (end !== "pays") {
      expect(await fixture.verificationResult(attemptId ?? "")).toEqual({ refused: expect.stringContaining(end) });
      expect((await fixture.status(paymentId)).state).toBe("requires_action");
      return;
    }
    expect(await fixture.verificationResult(attemptId ?? "")).toBe("verified");
    await fixture.relay();
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
  });
});

test("a factory that is not allowed is never called", async () => {
  expect(await unknown.calls()).toBe(0n);
});

test("an allowed factory deploys no wallet but the payer's", async () => {
  expect(await client.getCode({ address: await allowed.addressOf(stranger) })).toBeUndefined();
});

test("a contract wallet's transfer has its own transaction, and plain keys' transfers share one", async () => {
  const payers = [await plain(same)(), await deployed("owner")(), await plain(same)()];
  await mintUsdc(
    client,
    chain.contracts.token,
    payers.map(({ address }) => address),
    1_000_000_000n,
  );
  const payments: string[] = [];
  for (const payer of payers) {
    const paymentId = await fixture.create();
    payments.push(paymentId);
    const [option] = await fixture.offer(paymentId, payer);
    if (!option) throw new Error("there is no way to pay");
    const { attemptId } = unwrap(await fixture.confirm(paymentId, option.id, await signOption(option, payer.key)));
    await fixture.verify(attemptId ?? "");
  }
  await fixture.relay();
  await fixture.watch();
  const hashes = (await Promise.all(payments.map(fixture.status))).map(({ info }) => info?.txId);
  expect(hashes[0]).toBe(hashes[2]);
  expect(hashes[1]).not.toBe(hashes[0]);
});
