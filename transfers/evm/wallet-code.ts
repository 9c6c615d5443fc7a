import { keccak256 } from "viem";
import { readCodeHashes, unwrapSignature } from "../../chains/evm/account-code.ts";
import type { Call } from "../../chains/evm/multicall.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { EvmSigned } from "../verification.ts";

/** The code of a contract wallet. A wallet that is not deployed has none, and its signature names the call that deploys it. */
type WalletCode = { hash: string; isDeployed: boolean; deployment: Call | undefined };

/** The hash of no code at an address that holds native money (EIP-1052); of one that holds none it is zero. */
const NO_CODE_HASH = keccak256("0x");

/** Reads the code of each contract wallet. Its hash is the factory's address where the wallet is not deployed yet. */
export async function readWalletCodes(
  chain: EvmChain,
  wallets: readonly EvmSigned[],
): Promise<Map<EvmSigned, WalletCode>> {
  if (wallets.length === 0) return new Map();
  const hashes = await readCodeHashes(
    chain.rpc,
    wallets.map(({ payer }) => payer),
  );
  const codes = wallets.map((one, index): [EvmSigned, WalletCode] => {
    const hash = hashes[index] ?? "0x";
    if (hash !== NO_CODE_HASH && !/^0x0*$/.test(hash)) return [one, { hash, isDeployed: true, deployment: undefined }];
    const { deployment } = unwrapSignature(one.proof);
    return [one, { hash: deployment?.target ?? hash, isDeployed: false, deployment }];
  });
  return new Map(codes);
}
