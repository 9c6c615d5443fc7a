import { requireSafe } from "./wallet-errors.ts";

type Member = { readonly name: string; readonly type: string };

/** EIP-712 typed data, as wallets take it: numbers are 0x hex, except the chain id; addresses are in lower case. */
export type TypedData = {
  domain: Record<string, unknown>;
  types: Record<string, readonly Member[]>;
  primaryType: PrimaryType;
  message: Record<string, unknown>;
};

const toMembers = (text: string): readonly Member[] =>
  text.split(",").map((member) => {
    const [type = "", name = ""] = member.split(" ");
    return { name, type };
  });

const domainMembers = toMembers("string name,string version,uint256 chainId,address verifyingContract");
const authorization = toMembers(
  "address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce",
);
/** What a wallet signs: EIP-3009, EIP-2612, and Permit2's SignatureTransfer. */
const structs = {
  TransferWithAuthorization: authorization,
  ReceiveWithAuthorization: authorization,
  Permit: toMembers("address owner,address spender,uint256 value,uint256 nonce,uint256 deadline"),
  PermitTransferFrom: toMembers("TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline"),
};
type PrimaryType = keyof typeof structs;
const nested = { TokenPermissions: toMembers("address token,uint256 amount") };

/**
 * Reads typed data and makes it anew of the members that its standard names. What is signed is thus what is checked: the
 * given types, and members beside those of the standard, have no effect. Throws an `UnsafeActionError` for data of another
 * kind, members of a wrong form, and a domain that has other members or whose chain id is not a number (wallets drop it).
 */
export function readTypedData(json: unknown): TypedData {
  const { domain, primaryType, message } = toObject(parseJson(json));
  requireSafe(isPrimaryType(primaryType), "the wallet does not sign typed data of this kind");
  const given = toObject(domain);
  const ofDomain = domainMembers.filter(({ name }) => Object.hasOwn(given, name));
  requireSafe(ofDomain.length === Object.keys(given).length, "the domain of the typed data has unknown members");
  requireSafe(
    Number.isSafeInteger(given["chainId"]) && typeof given["name"] === "string",
    "the domain of the typed data lacks its chain or its name",
  );
  const types = primaryType === "PermitTransferFrom" ? nested : {};
  return {
    domain: { ...readStruct(ofDomain, given), chainId: given["chainId"] },
    types: { EIP712Domain: ofDomain, [primaryType]: structs[primaryType], ...types },
    primaryType,
    message: readStruct(structs[primaryType], toObject(message)),
  };
}

const isPrimaryType = (name: unknown): name is PrimaryType => typeof name === "string" && Object.hasOwn(structs, name);

const readStruct = (members: readonly Member[], given: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(members.map((member) => [member.name, readMember(member, given[member.name])]));

function readMember({ name, type }: Member, value: unknown): unknown {
  if (type === "TokenPermissions") return readStruct(nested[type], toObject(value));
  const number = type === "uint256" ? toNumber(value) : undefined;
  if (number !== undefined) return `0x${number.toString(16)}`;
  const forms: Record<string, RegExp> = { string: /^/, address: /^0x[0-9a-f]{40}$/i, bytes32: /^0x[0-9a-f]{64}$/i };
  requireSafe(
    typeof value === "string" && forms[type]?.test(value) === true,
    `${name} of the typed data is no ${type}`,
  );
  return type === "address" ? value.toLowerCase() : value;
}

function parseJson(json: unknown): unknown {
  try {
    return typeof json === "string" ? JSON.parse(json) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the members of an object; none for anything else. */
export const toObject = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? { ...value } : {};

/** Returns a whole number of 256 bits from a JSON number, decimal text or hex; undefined for anything else. */
export function toNumber(value: unknown): bigint | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined;
  if (typeof value !== "string" || !/^(0x[0-9a-f]{1,64}|\d{1,78})$/i.test(value)) return undefined;
  const number = BigInt(value);
  return number < 2n ** 256n ? number : undefined;
}
