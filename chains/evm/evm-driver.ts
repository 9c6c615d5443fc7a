import { getAddress, isAddress } from "viem";
import { evmAddressPattern, evmChainPattern } from "../../runtime/caip-patterns.ts";
import type { EvmNetwork } from "../../runtime/networks/read-networks.ts";
import type { AssetId } from "../caip.ts";
import type { ChainDriver } from "../chain-driver.ts";
import { readBalancesAt } from "./balances-at-block.ts";
import { readFinalHeight } from "./blocks.ts";
import { checkEvmChain } from "./check-evm-chain.ts";
import { collectorAddress } from "./collector-contract.ts";
import { disburserAddress } from "./disburser-contract.ts";
import { encodePayout, openEvmPayoutSigner, payoutKind, sharesNonces } from "./evm-payouts.ts";
import { readFinalBalance } from "./final-balance.ts";
import { readFinalMovements } from "./final-movements.ts";
import { accountsOf, type EvmChain, getEvmToken, openEvmChain } from "./open-evm-chain.ts";
import { compareFeed } from "./price-feeds.ts";
import { readTreasuryHistory } from "./treasury-history.ts";

/** The driver of EVM chains (CAIP-2 namespace `eip155`). */
export const evmDriver: ChainDriver<EvmNetwork, EvmChain> = {
  nativeCoin: 60,
  tokenNamespace: "erc20",
  // Columns of amounts have 78 digits: numeric(78,0).
  maxAmount: 10n ** 78n - 1n,
  readsPastBalances: true,
  signsPayouts: true,

  normalizeAddress: (address) => address.toLowerCase(),
  normalizeAsset: (asset) => asset.toLowerCase(),
  isAddress: (text) => evmAddressPattern.test(text),
  validateAddress,
  validateToken,
  movementScope: ({ block_id }) => block_id,
  senderOf: ({ isWallet }) => (isWallet ? "wallet lane" : "lanes"),

  nativeUnit: ({ addEthereumChain }) => ({ decimals: 18, symbol: addEthereumChain?.currency.symbol ?? "(native)" }),
  blockMs: ({ blockMs }) => blockMs,
  finalityMs,
  makesBlocksOnDemand: ({ maxHeadAgeMs }) => maxHeadAgeMs === null,
  detailsOf: ({ addEthereumChain }) => addEthereumChain,
  // The fee ceiling includes what an OP-stack rollup charges besides the gas.
  mostCost: ({ feeModel, fees }, { gasLimit, maxFeePerGas }) =>
    gasLimit * (feeModel === "op-stack" ? fees.maxFeePerGas : maxFeePerGas),
  listOwnAddresses,

  open: openEvmChain,
  check: checkEvmChain,
  listHistoryAccounts: () => [],
  readBalances: readBalancesAt,
  readFinalBalance,
  openPayoutSigner: openEvmPayoutSigner,
  payoutKind: (chain, asset) => payoutKind(getEvmToken(chain, asset)),
  sharesNonces,
  encodePayout,
  readFinalMovements,
  withTreasury: (chain, treasury) => ({ ...chain, ...accountsOf(chain.permit2, treasury) }),
  readFinalHeight: (chain) => readFinalHeight(chain, chain.rpc),
  readTreasuryHistory,
  readPriceFeed: (chain, { feed, sequencer, isUsable }) =>
    compareFeed(chain, {
      feed: getAddress(feed),
      sequencer: sequencer === undefined ? undefined : getAddress(sequencer),
      isUsable,
    }),
};

/** A mixed-case address carries a checksum (EIP-55); a wrong checksum indicates a typing error. */
function validateAddress(address: string): string | undefined {
  if (!evmAddressPattern.test(address)) return "expected an address of 20 bytes in hex";
  if (/^0x0{40}$/.test(address)) return "is the zero address";
  const hasChecksum = /[a-f]/.test(address.slice(2)) && /[A-F]/.test(address.slice(2));
  return hasChecksum && !isAddress(address) ? "the address's checksum is wrong (EIP-55)" : undefined;
}

function validateToken({ chain, namespace, token }: AssetId): string | undefined {
  if (!evmChainPattern.test(chain)) return "expected a chain such as eip155:8453";
  if (namespace !== "erc20") return "expected a token, such as eip155:8453/erc20:0x…";
  return validateAddress(token);
}

function finalityMs({ finality, blockMs }: EvmNetwork): number {
  if (typeof finality === "object") return finality.blocks * blockMs;
  return finality === "safe" ? 10 * 60_000 : 30 * 60_000;
}

function listOwnAddresses(network: EvmNetwork): string[] {
  const own = [network.treasury, ...network.lanes].map(({ address }) => address);
  const [treasury, permit2] = [getAddress(network.treasury.address), getAddress(network.permit2)];
  const contracts = [permit2, collectorAddress({ treasury, permit2 }), disburserAddress(treasury)];
  return [...own, network.multicall, ...contracts].map((address) => address.toLowerCase());
}
