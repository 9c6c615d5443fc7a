import { type Hex, keccak256 } from "viem";
import { ChainError } from "../../chains/errors.ts";
import { putsCodeAt, readCodeHashes, unwrapSignature } from "../../chains/evm/account-code.ts";
import { type Call, requireResponsive } from "../../chains/evm/multicall.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { EvmSigned } from "../verification.ts";

/**
 * The code of a contract wallet. `isFake`: the wallet is not deployed, and the call that should deploy it puts no code at its address.
 */
type WalletCode = { hash: string; isDeployed: boolean; isFake: boolean };

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
  const codes = wallets.map(async (one, index): Promise<[EvmSigned, WalletCode]> => {
    const hash = hashes[index] ?? "0x";
    if (hash !== NO_CODE_HASH && !/^0x0*$/.test(hash)) return [one, { hash, isDeployed: true, isFake: false }];
    const { deployment } = unwrapSignature(one.proof);
    const isFake = deployment !== undefined && !(await deploys(chain, one.payer, deployment));
    return [one, { hash: deployment?.target ?? hash, isDeployed: false, isFake }];
  });
  return new Map(await Promise.all(codes));
}

/** Returns true if a factory's call deploys the payer's wallet. Otherwise a lane would make any call that the buyer chooses. */
async function deploys(chain: EvmChain, payer: Hex, deployment: Call): Promise<boolean> {
  return putsCodeAt(chain.rpc, payer, deployment).catch(async (error: unknown) => {
    if (!(error instanceof ChainError && error.code === "rpc_answer")) throw error;
    await requireResponsive(chain.rpc, chain.multicall);
    return false;
  });
}
