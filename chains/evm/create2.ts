import { concat, getContractAddress, type Hex, pad } from "viem";

/** The deployer that stands at one address on nearly every network (github.com/Arachnid/deterministic-deployment-proxy). */
export const CREATE2_DEPLOYER: Hex = "0x4e59b44847b379578588920ca78fbf26c0b4956c";

const SALT = pad("0x0", { size: 32 });

/** A compiled contract, as contracts/build.ts writes it. */
type Artifact = {
  deployedBytecode: string;
  immutables: Record<string, readonly { start: number; length: number }[]>;
};

/** What to send to the CREATE2 deployer (EIP-1014) to put a contract in place. */
export function encodeDeployment(initCode: Hex): { to: Hex; data: Hex } {
  return { to: CREATE2_DEPLOYER, data: concat([SALT, initCode]) };
}

/** Where the contract of an init code stands, whether it is deployed or not; in lower case. */
export function create2Address(bytecode: Hex): Hex {
  return getContractAddress({ opcode: "CREATE2", from: CREATE2_DEPLOYER, salt: SALT, bytecode }).toLowerCase() as Hex;
}

/** The code that a deployed contract has: the compiled one with its immutables filled in. */
export function deployedCode(artifact: Artifact, immutables: Record<string, Hex>): Hex {
  let code = artifact.deployedBytecode;
  for (const [name, value] of Object.entries(immutables))
    for (const { start, length } of artifact.immutables[name] ?? [])
      code = `${code.slice(0, 2 + start * 2)}${pad(value, { size: length }).slice(2)}${code.slice(2 + (start + length) * 2)}`;
  return code.toLowerCase() as Hex;
}
