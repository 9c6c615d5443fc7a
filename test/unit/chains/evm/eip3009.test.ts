import { randomBytes } from "node:crypto";
import {
  decodeFunctionData,
  domainSeparator as domainSeparatorByViem,
  getAddress,
  type Hex,
  hashTypedData,
  type TypedDataDefinition,
  toHex,
  verifyTypedData,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { tokenAbi } from "../../../../chains/evm/abi.ts";
import {
  type Authorization,
  domainSeparator,
  encodeTransfer,
  hashAuthorization,
  type TokenDomain,
  typedDataJson,
} from "../../../../chains/evm/eip3009.ts";

const types = {
  TransferWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

const randomHex = (bytes: number): Hex => toHex(randomBytes(bytes));
const randomAddress = () => getAddress(randomHex(20));

function randomDomain(): TokenDomain {
  const chainId = 1 + Math.floor(Math.random() * 2 ** 40);
  return { name: `Coin ${randomHex(3)} ü`, version: randomHex(1), chainId, verifyingContract: randomAddress() };
}

function randomAuthorization(): Authorization {
  return {
    token: randomAddress(),
    from: randomAddress(),
    to: randomAddress(),
    value: BigInt(randomHex(1 + Math.floor(Math.random() * 32))),
    validBefore: Math.floor(Math.random() * 2 ** 48),
    nonce: randomHex(32),
  };
}

/** Returns the digest that viem computes for the same authorization. */
function digestByViem(domain: TokenDomain, { from, to, value, validBefore, nonce }: Authorization): Hex {
  const message = { from, to, value, validAfter: 0n, validBefore: BigInt(validBefore), nonce };
  return hashTypedData({ domain, types, primaryType: "TransferWithAuthorization", message });
}

test("the digest and the domain separator equal viem's for 300 random domains and authorizations", () => {
  for (let round = 0; round < 300; round += 1) {
    const domain = randomDomain();
    const authorization = randomAuthorization();
    const separator = domainSeparator(domain);
    expect(separator).toBe(domainSeparatorByViem({ domain }));
    expect(hashAuthorization(separator, authorization), JSON.stringify({ domain, round })).toBe(
      digestByViem(domain, authorization),
    );
  }
});

test("every member of an authorization changes its digest, the token through the domain separator", () => {
  const domain = randomDomain();
  const separator = domainSeparator(domain);
  const one = randomAuthorization();
  const others: Authorization[] = [
    { ...one, from: randomAddress() },
    { ...one, to: randomAddress() },
    { ...one, value: one.value ^ 1n },
    { ...one, validBefore: one.validBefore + 1 },
    { ...one, nonce: randomHex(32) },
  ];
  const digests = [one, ...others].map((authorization) => hashAuthorization(separator, authorization));
  expect(new Set(digests).size).toBe(digests.length);
  const elsewhere = domainSeparator({ ...domain, verifyingContract: randomAddress() });
  expect(hashAuthorization(elsewhere, one)).not.toBe(digests[0]);
});

describe("the typed data for wallets", () => {
  const domain = { ...randomDomain(), chainId: 8453 };
  const authorization = { ...randomAuthorization(), value: 2n ** 200n + 1n, validBefore: 1_900_000_000 };
  const parsed = JSON.parse(typedDataJson(domain, authorization)) as {
    types: Record<string, { name: string; type: string }[]>;
    domain: Record<string, unknown>;
    primaryType: string;
    message: Record<string, unknown>;
  };

  test("the typed data for wallets has the chain id as a number, because wallets compare numbers", () => {
    expect(parsed.domain["chainId"]).toBe(8453);
  });

  test("lists EIP712Domain with exactly the members of the domain", () => {
    expect(parsed.types["EIP712Domain"]?.map(({ name }) => name).sort()).toEqual(Object.keys(parsed.domain).sort());
  });

  test("the typed data for wallets has one root type, and its message has exactly the members of that type", () => {
    expect(Object.keys(parsed.types).filter((name) => name !== "EIP712Domain")).toEqual([parsed.primaryType]);
    expect(Object.keys(parsed.message)).toEqual(parsed.types[parsed.primaryType]?.map(({ name }) => name));
  });

  test("the typed data for wallets has amounts as 0x hex, so that no JSON parser rounds them", () => {
    for (const name of ["value", "validAfter", "validBefore"]) expect(parsed.message[name]).toMatch(/^0x[0-9a-f]+$/);
    expect(BigInt(parsed.message["value"] as string)).toBe(authorization.value);
  });

  test("gives the signature that we verify, whether a wallet strips EIP712Domain or not", async () => {
    const account = privateKeyToAccount(generatePrivateKey());
    const own = { ...authorization, from: account.address };
    const whole = JSON.parse(typedDataJson(domain, own)) as TypedDataDefinition & { types: Record<string, unknown> };
    const { EIP712Domain: _, ...stripped } = whole.types;
    const signatures = await Promise.all([
      account.signTypedData(whole),
      account.signTypedData({ ...whole, types: stripped } as TypedDataDefinition),
    ]);
    expect(signatures[0]).toBe(signatures[1]);
    expect(signatures[0]).toBe(await account.sign({ hash: hashAuthorization(domainSeparator(domain), own) }));
    const check = { ...whole, address: account.address, signature: signatures[0] };
    expect(await verifyTypedData(check as never)).toBe(true);
  });
});
test.each([0, 1, 27, 28])("a signature with v of %i is encoded with v of 27 or 28", (v) => {
  const authorization = randomAuthorization();
  const [r, s] = [randomHex(32), `0x${"1".repeat(64)}` as Hex];
  const signature = `${r}${s.slice(2)}${v.toString(16).padStart(2, "0")}` as Hex;
  const { args } = decodeFunctionData({ abi: tokenAbi, data: encodeTransfer(authorization, signature) });
  const { from, to, value, validBefore, nonce } = authorization;
  expect(args).toEqual([from, to, value, 0n, BigInt(validBefore), nonce, v % 27 === 0 ? 27 : 28, r, s]);
});
