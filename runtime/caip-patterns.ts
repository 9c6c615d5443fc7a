// Imports nothing, so that every module may use the patterns.

const CHAIN = "[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}";
const NAMESPACE = "[-a-z0-9]{3,8}";
const REFERENCE = "[-.%a-zA-Z0-9]{1,128}";
const EVM_ADDRESS = "0x[0-9a-fA-F]{40}";
const BASE58 = "[1-9A-HJ-NP-Za-km-z]";
/** Base58 of 32 bytes. */
const SOLANA_ADDRESS = `${BASE58}{32,44}`;
/** The first 32 characters of a cluster's genesis hash (CAIP-30). */
const SOLANA_REFERENCE = `${BASE58}{32}`;

/** CAIP-2 chain ids. */
export const chainIdPattern = new RegExp(`^${CHAIN}$`);
/** Addresses of CAIP-10 accounts. */
export const accountAddressPattern = new RegExp(`^${REFERENCE}$`);
/** CAIP-19 assets. The groups are the chain id, the asset namespace and the asset reference. */
export const assetPattern = new RegExp(`^(${CHAIN})/(${NAMESPACE}):(${REFERENCE})$`);

/** CAIP-2 ids of EVM chains, without leading zeros. */
export const evmChainPattern = /^eip155:[1-9]\d*$/;
/** EVM addresses, in any case. */
export const evmAddressPattern = new RegExp(`^${EVM_ADDRESS}$`);
/** CAIP-19 assets that are ERC-20 tokens. */
export const evmAssetPattern = new RegExp(`^eip155:\\d+/erc20:${EVM_ADDRESS}$`);

/** CAIP-2 references of Solana clusters. */
export const solanaReferencePattern = new RegExp(`^${SOLANA_REFERENCE}$`);
/** Texts that have the length and the digits of a Solana address. */
export const solanaAddressPattern = new RegExp(`^${SOLANA_ADDRESS}$`);
/** CAIP-19 assets that are SPL tokens. */
export const solanaAssetPattern = new RegExp(`^solana:${SOLANA_REFERENCE}/token:${SOLANA_ADDRESS}$`);

/** The accounts of each chain family: an address, or a CAIP-10 account with one. EVM addresses ignore case; base58 does not. */
export const accountForms: readonly { pattern: RegExp; ignoresCase: boolean }[] = [
  { pattern: new RegExp(`^(eip155:\\d+:)?${EVM_ADDRESS}$`), ignoresCase: true },
  { pattern: new RegExp(`^(solana:${SOLANA_REFERENCE}:)?${SOLANA_ADDRESS}$`), ignoresCase: false },
];
