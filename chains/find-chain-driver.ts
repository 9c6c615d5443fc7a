import { namespaceOf } from "../runtime/caip-namespace.ts";
import type { ChainDriver } from "./chain-driver.ts";
import { evmDriver } from "./evm/evm-driver.ts";
import { solanaDriver } from "./solana/solana-driver.ts";

/** The chain families, by CAIP-2 namespace. */
const drivers: ReadonlyMap<string, ChainDriver> = new Map<string, ChainDriver>([
  ["eip155", evmDriver],
  ["solana", solanaDriver],
]);

/**
 * Returns the driver of a chain, whether the networks file has the chain or not. Returns undefined for an unknown family.
 * @param id CAIP-2, or an account or asset (CAIP-10, CAIP-19), which begin with it
 */
export function findChainDriver(id: string): ChainDriver | undefined {
  return drivers.get(namespaceOf(id));
}

/** Returns the driver of a chain, like `findChainDriver`. Throws for an unknown family. */
export function getChainDriver(id: string): ChainDriver {
  const driver = findChainDriver(id);
  if (!driver) throw new Error(`the chain family of ${id} is not known`);
  return driver;
}
