import { concat, encodeAbiParameters, encodeFunctionData, type Hex, type PrivateKeyAccount, zeroAddress } from "viem";
import type { TestChain } from "./evm-chain.ts";
import { deployTestContract, testContract } from "./test-contracts.ts";

/** A wallet factory, with the address of an owner's wallet and the number of calls of the factory. */
export type Factory = { address: Hex; addressOf(owner: Hex): Promise<Hex>; calls(): Promise<bigint> };

/** Deploys a wallet factory. */
export async function deployFactory(chain: TestChain): Promise<Factory> {
  const address = await deployTestContract(chain.client, "Wallets", "WalletFactory");
  const { abi } = testContract("Wallets", "WalletFactory");
  const read = (functionName: string, args: unknown[]) =>
    chain.client.readContract({ address, abi, functionName, args });
  return {
    address,
    addressOf: async (owner) => ((await read("addressOf", [owner])) as string).toLowerCase() as Hex,
    calls: () => read("calls", []) as Promise<bigint>,
  };
}

/** Deploys an owner's wallet. Returns its address. */
export async function deployWallet(chain: TestChain, factory: Factory, owner: Hex): Promise<Hex> {
  const hash = await chain.client.sendTransaction({ to: factory.address, data: encodeCreate(owner) });
  await chain.client.waitForTransactionReceipt({ hash });
  return factory.addressOf(owner);
}

/** Wraps the signature of a wallet that is not deployed yet, as ERC-6492 specifies. */
export function wrapUndeployed(factory: Factory, owner: Hex, signature: Hex): Hex {
  const parts = encodeAbiParameters(
    [{ type: "address" }, { type: "bytes" }, { type: "bytes" }],
    [factory.address, encodeCreate(owner), signature],
  );
  return concat([parts, `0x${"6492".repeat(16)}`]);
}

/** Delegates a key to a contract's code (EIP-7702) by the key's own authorization. */
export async function delegate(chain: TestChain, key: PrivateKeyAccount, name: "Delegate" | "SilentDelegate") {
  const contractAddress = await deployTestContract(chain.client, "Wallets", name);
  const chainId = await chain.client.getChainId();
  const nonce = await chain.client.getTransactionCount({ address: key.address });
  const authorization = await key.signAuthorization({ contractAddress, chainId, nonce });
  const hash = await chain.client.sendTransaction({
    to: zeroAddress,
    gas: 200_000n,
    authorizationList: [authorization],
  });
  await chain.client.waitForTransactionReceipt({ hash });
}

function encodeCreate(owner: Hex): Hex {
  return encodeFunctionData({
    abi: testContract("Wallets", "WalletFactory").abi,
    functionName: "create",
    args: [owner],
  });
}
