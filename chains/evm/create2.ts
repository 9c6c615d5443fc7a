import { concat, getContractAddress, type Hex, pad } from "viem";
import { lowerCaseHex } from "./hex.ts";

/**
 * The CREATE2 deployer, at the same address on nearly every network
 * (github.com/Arachnid/deterministic-deployment-proxy).
 */
const CREATE2_DEPLOYER: Hex = "0x4e59b44847b379578588920ca78fbf26c0b4956c";

const SALT = pad("0x0", { size: 32 });

/** A compiled contract. contracts/build.ts writes it. */
type Artifact = {
  deployedBytecode: string;
  immutables: Record<string, readonly { start: number; length: number }[]>;
};

/** Returns the call to the CREATE2 deployer (EIP-1014) that deploys a contract. */
export function encodeDeployment(initCode: Hex): { to: Hex; data: Hex } {
  return { to: CREATE2_DEPLOYER, data: concat([SALT, initCode]) };
}

/** Returns the address of a contract by its init code, deployed or not; in lower case. */
export function create2Address(bytecode: Hex): Hex {
  return lowerCaseHex(getContractAddress({ opcode: "CREATE2", from: CREATE2_DEPLOYER, salt: SALT, bytecode }));
}

/** Returns the code of a deployed contract: the compiled code with its immutables filled in. */
export function deployedCode(artifact: Artifact, immutables: Record<string, Hex>): Hex {
  let code = artifact.deployedBytecode;
  for (const [name, value] of Object.entries(immutables))
    for (const { start, length } of artifact.immutables[name] ?? [])
      code = `${code.slice(0, 2 + start * 2)}${pad(value, { size: length }).slice(2)}${code.slice(2 + (start + length) * 2)}`;
  return lowerCaseHex(code);
}
