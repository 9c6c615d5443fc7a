import type { Chain } from "../chains/chain.ts";
import { namespaceOf } from "../runtime/caip-namespace.ts";
import { evmTransfers } from "./evm/evm-transfers.ts";
import { evmResults } from "./evm/wallet-results.ts";
import { solanaTransfers } from "./solana/solana-transfers.ts";
import { solanaResults } from "./solana/wallet-results.ts";
import type { TransferDriver } from "./transfer-driver.ts";
import type { ResultReader } from "./wallet-driver.ts";

/** Made once for each chain, because an options request asks for the driver three times for each option. */
const drivers = new WeakMap<Chain, TransferDriver>();

/** Returns the driver of a chain. */
export function getTransferDriver(chain: Chain): TransferDriver {
  const driver = drivers.get(chain) ?? openDriver(chain);
  drivers.set(chain, driver);
  return driver;
}

/** No other functions of this module than this and `getResultReader` depend on the family. */
function openDriver(chain: Chain): TransferDriver {
  switch (chain.namespace) {
    case "eip155":
      return evmTransfers(chain);
    case "solana":
      return solanaTransfers(chain);
  }
}

const resultReaders: ReadonlyMap<string, ResultReader> = new Map([
  ["eip155", evmResults],
  ["solana", solanaResults],
]);

/** Returns the reader of what wallets return on a chain (CAIP-2), whether the networks file has the chain or not. */
export function getResultReader(chain: string): ResultReader {
  const reader = resultReaders.get(namespaceOf(chain));
  if (!reader) throw new Error(`the chain family of ${chain} is not known`);
  return reader;
}
