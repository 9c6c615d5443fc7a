import { type Hex, hashTypedData, recoverAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { permitTransferJson } from "../../../chains/evm/collector-contract.ts";
import { permitJson } from "../../../chains/evm/eip2612.ts";
import { typedDataJson } from "../../../chains/evm/eip3009.ts";
import { parseTypedData } from "../../../chains/evm/typed-data.ts";
import { UnsafeActionError, type WalletRpc } from "../../../client/index.ts";
import { evmSigner } from "../../../client/viem.ts";

const account = privateKeyToAccount(`0x${"07".repeat(32)}`);
const owner = account.address;
const [token, collector]: [Hex, Hex] = [`0x${"b2".repeat(20)}`, `0x${"c3".repeat(20)}`];
const permit2 = "0x000000000022D473030F116dDEE9F6B43aC78BA3";
const chain = "eip155:8453";
const value = 12_500_000n;
const nonce: Hex = `0x${"01".repeat(32)}`;
const domain = { name: "USD Coin", version: "2", chainId: 8453, verifyingContract: token };
const soon = Math.floor(Date.now() / 1000) + 24 * 60 * 60;

const option = {
  id: "opt",
  optionId: "opt",
  account: `${chain}:${owner}`,
  amount: {
    unit: `caip19/${chain}/erc20:${token}`,
    value: `${value}`,
    display: { assetSymbol: "", assetName: "", decimals: 6 },
  },
  etaS: 1,
  expiresAt: null,
  actions: [],
  collectData: null,
};

const authorization = (validBefore = soon) =>
  typedDataJson(domain, { token, from: owner, to: collector, value, validBefore, nonce });
const transferPermit = (deadline = soon) =>
  permitTransferJson({ chainId: 8453, permit2, collector }, { token, amount: value, nonce, deadline });
const permit = (deadline = soon) => permitJson(domain, { owner, spender: permit2, value, nonce: 0n, deadline });
/** The other kind of authorization has the same members. */
const received = () => authorization().replaceAll("TransferWithAuthorization", "ReceiveWithAuthorization");

/** Returns typed data with other members at its top, such as another domain. */
const change = (json: string, more: object): string => JSON.stringify({ ...JSON.parse(json), ...more });

/** Has a real account sign typed data, and returns its signatures. */
function sign(...jsons: string[]): Promise<string[]> {
  const actions = jsons.map(
    (json): WalletRpc => ({ chain_id: chain, method: "eth_signTypedData_v4", params: [owner, json] }),
  );
  return evmSigner(account, { chains: [8453] }).execute(actions, option);
}

test.each([
  ["an authorization", [authorization()]],
  ["an authorization that the receiver executes", [received()]],
  ["a permit and a Permit2 transfer", [permit(), transferPermit()]],
])("an account signs exactly %s that the service has hashed", async (_name, jsons) => {
  const signatures = await sign(...jsons);
  for (const [index, json] of jsons.entries()) {
    const hash = hashTypedData(parseTypedData(json));
    expect(await recoverAddress({ hash, signature: signatures[index] as Hex })).toBe(owner);
  }
});

test("types of another standard have no effect: an allowance of DAI is signed as the permit that was checked", async () => {
  const types = {
    Permit: [
      { name: "holder", type: "address" },
      { name: "spender", type: "address" },
      { name: "nonce", type: "uint256" },
      { name: "expiry", type: "uint256" },
      { name: "allowed", type: "bool" },
    ],
  };
  const { message } = JSON.parse(permit());
  const unlimited = change(permit(), { types, message: { ...message, holder: owner, expiry: 0, allowed: true } });
  const [signature] = await sign(unlimited, transferPermit());
  const signerOf = (json: string) =>
    recoverAddress({ hash: hashTypedData(parseTypedData(json)), signature: signature as Hex });
  expect(await signerOf(unlimited)).not.toBe(owner);
  expect(await signerOf(permit())).toBe(owner);
});

const later = soon + 3 * 60 * 60;
const { chainId, ...withoutChain } = domain;

test.each<[string, string[]]>([
  [
    "a chain id as text, which wallets leave out",
    [change(authorization(), { domain: { ...domain, chainId: "8453" } })],
  ],
  [
    "a salt in the domain, as of Polygon's bridged coins",
    [change(authorization(), { domain: { ...domain, salt: `0x${chainId.toString(16).padStart(64, "0")}` } })],
  ],
  ["a domain without a chain", [change(authorization(), { domain: withoutChain })]],
  ["a version that is no text", [change(authorization(), { domain: { ...domain, version: { a: 1 } } })]],
  ["an authorization that is valid for days", [authorization(later)]],
  ["a Permit2 transfer that is valid for days", [transferPermit(later)]],
  ["an allowance that can be granted for days", [permit(later), transferPermit()]],
  ["a nonce that is cut off", [authorization().replace(nonce, nonce.slice(0, -2))]],
  [
    "a number of more than 256 bits",
    [authorization().replace('"validAfter":"0x0"', `"validAfter":"0x1${"0".repeat(64)}"`)],
  ],
  ["an authorization without its end", [authorization().replace('validBefore":', 'before":')]],
  ["a kind of typed data that every object has", [change(authorization(), { primaryType: "constructor" })]],
])("an account does not sign %s", async (_name, jsons) => {
  await expect(sign(...jsons)).rejects.toThrow(UnsafeActionError);
});
