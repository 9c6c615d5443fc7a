import type { SolanaNetwork } from "../../runtime/networks/read-networks.ts";
import { type AssetId, parseAssetId } from "../caip.ts";
import type { ChainDriver, StoredCost } from "../chain-driver.ts";
import type { PayoutSigner } from "../payout-signer.ts";
import type { KeyReaders } from "../signers/open-key-source.ts";
import { findTokenAccount } from "./build-payment.ts";
import { checkSolanaChain } from "./check-solana-chain.ts";
import { readFinal } from "./cluster-state.ts";
import { listCreatedAccounts, listCreatedMarkers } from "./created-accounts.ts";
import { isAddress } from "./ed25519-keys.ts";
import { readFinalBalance, readFinalBalances } from "./final-balances.ts";
import { readFinalMovements } from "./final-movements.ts";
import { accountsOf, openSolanaChain, type SolanaChain } from "./open-solana-chain.ts";
import { openSolanaKey } from "./open-solana-keys.ts";
import { readTreasuryHistory } from "./treasury-history.ts";
import { parseTransaction } from "./wire-format.ts";

/** The driver of Solana clusters (CAIP-2 namespace `solana`). */
export const solanaDriver: ChainDriver<SolanaNetwork, SolanaChain> = {
  nativeCoin: 501,
  tokenNamespace: "token",
  // The token programs store amounts as u64.
  maxAmount: 2n ** 64n - 1n,
  readsPastBalances: false,
  signsPayouts: false,

  normalizeAddress: (address) => address,
  normalizeAsset: (asset) => asset,
  isAddress,
  validateAddress: (address) => (isAddress(address) ? undefined : "expected an address of 32 bytes in base58"),
  validateToken,
  movementScope: ({ tx_hash }) => tx_hash,
  senderOf: () => "relayers",

  nativeUnit: () => ({ decimals: 9, symbol: "SOL" }),
  blockMs: ({ slotMs }) => slotMs,
  finalityMs: ({ finality, slotMs }) => (finality === "confirmed" ? 3 : 32) * slotMs,
  makesBlocksOnDemand: () => false,
  detailsOf: () => undefined,
  mostCost,
  listOwnAddresses,

  open: openSolanaChain,
  check: checkSolanaChain,
  listHistoryAccounts: ({ tokens }) => [...tokens.values()].map(({ treasuryAccount }) => treasuryAccount),
  readBalances: (chain, holdings) => readFinalBalances(chain, holdings),
  readFinalBalance,
  openPayoutSigner,
  payoutKind: () => "spl",
  // The marker names the nonce alone.
  sharesNonces: () => true,
  encodePayout: ({ chain }) => {
    throw new Error(`a payout on ${chain} is a transaction of its own`);
  },
  readFinalMovements,
  withTreasury: (chain, treasury) => ({ ...chain, ...accountsOf(chain, treasury) }),
  readFinalHeight: async (chain) => (await readFinal(chain)).slot,
  readTreasuryHistory,
  readPriceFeed: async ({ chain }) => {
    throw new Error(`${chain} has no price feeds`);
  },
};

/** Opens the treasury's key, which signs the transaction that makes a payout, not the payout itself. */
async function openPayoutSigner({ network }: SolanaChain, readers: KeyReaders): Promise<PayoutSigner> {
  const treasury = await openSolanaKey(network.treasury, readers);
  return { sign: async () => null, signMessage: (message) => treasury.sign(message) };
}

function validateToken({ namespace, token }: AssetId): string | undefined {
  if (namespace !== "token") return "expected a token, such as solana:5eykt4U…/token:EPjFWdd5…";
  return isAddress(token) ? undefined : "expected a mint's address in base58";
}

/** Two signatures, lamports. */
const SIGNATURES = 10_000n;
/** More than the rent of a token account with extensions, lamports. */
const MOST_RENT = 5_000_000n;

function mostCost({ maxPriorityFee }: SolanaNetwork, { bytes }: StoredCost): bigint {
  const parsed = parseTransaction(bytes);
  const created = "error" in parsed ? 0 : listCreatedAccounts(parsed).length + listCreatedMarkers(parsed).length;
  return SIGNATURES + maxPriorityFee + BigInt(created) * MOST_RENT;
}

function listOwnAddresses({ treasury, lanes, assets }: SolanaNetwork): string[] {
  const tokenAccounts = assets.map(({ asset, program }) =>
    findTokenAccount(treasury.address, parseAssetId(asset)?.token ?? "", program),
  );
  return [treasury.address, ...lanes.map(({ address }) => address), ...tokenAccounts];
}
