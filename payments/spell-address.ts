import { getAddress, isAddress } from "viem";

/** Returns an address in one spelling, because a wallet's spelling may differ between requests. */
export function spellAddress(address: string): string {
  return isAddress(address) ? getAddress(address) : address;
}
